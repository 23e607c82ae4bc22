// fetch.js HOW URL: prints a page; fails unless it came.
const [how, url] = process.argv.slice(2);

function fail(error) {
    console.error(error.cause ?? error);
    process.exitCode = 1;
}

if (how === "fetch") {
    fetch(url)
        .then((answer) => (answer.ok ? answer.text() : Promise.reject(answer.status)))
        .then(console.log, fail);
} else {
    require(new URL(url).protocol.slice(0, -1))
        .get(url, (answer) => {
            answer.pipe(process.stdout);
            if (answer.statusCode !== 200) fail(answer.statusCode);
        })
        .on("error", fail);
}
