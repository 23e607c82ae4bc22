// ask.js HOW METHOD URL [NAME=VALUE ...] [BODY]: as ask.py, with what Node has.
const [how, method, url, ...rest] = process.argv.slice(2).map((word) =>
    word.replace(/\$(\w+)/g, (_, name) => process.env[name] ?? ""));
const isHeader = (word) => /^[A-Z][\w-]*=/.test(word);
const headers = Object.fromEntries(rest.filter(isHeader).map((word) => word.split(/=(.*)/s).slice(0, 2)));
const body = rest.filter((word) => !isHeader(word)).join("") || undefined;

function fail(error) {
    console.error(error.cause ?? error);
    process.exitCode = 1;
}

function show(version, status, headers, body) {
    console.log(version, status);
    for (const [name, value] of headers) console.log(`${name}: ${value}`);
    console.log(`\n${body}`);
}

async function withFetch() {
    const answer = await fetch(url, { method, headers, body });
    show("HTTP/1.1", answer.status, answer.headers, await answer.text());
}

function withHttp2() {
    const { origin, pathname, search } = new URL(url);
    const session = require("http2").connect(origin);
    session.on("error", fail);
    const stream = session.request({ ":method": method, ":path": pathname + search, ...headers });
    stream.on("error", fail);
    let head, text = "";
    stream.on("response", (got) => { head = got; });
    stream.setEncoding("utf8");
    stream.on("data", (part) => { text += part; });
    stream.on("end", () => {
        session.close();
        if (!head) return fail("no answer");
        show("HTTP/2", head[":status"], Object.entries(head), text);
    });
    stream.end(body);
}

if (how === "fetch") withFetch().catch(fail);
else withHttp2();
