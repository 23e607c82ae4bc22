// Uploads with fetch, as a whole and as a stream, over kept connections.
const body = 'some words\n'.repeat(50000);
const stream = () => new Blob([body]).stream();
(async () => {
    const said = [];
    for (const given of [() => body, stream, () => Buffer.from(body), () => new URLSearchParams({a: body})]) {
        for (const method of ['POST', 'PUT']) {
            const answer = await fetch('http://v4.example.org:8006/upload', {method, body: given(), duplex: 'half'});
            said.push((await answer.json()).body_bytes);
        }
    }
    console.log(said.join(' '));
})();
