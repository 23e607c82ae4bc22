"""Sums uploads up; the second half of /events waits until /go is asked for."""
import hashlib
import http.server
import threading

go = threading.Semaphore(0)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_PUT(self):
        left, total = int(self.headers["Content-Length"]), hashlib.sha256()
        while left:
            part = self.rfile.read(min(left, 1 << 16))
            left -= len(part)
            total.update(part)
        self.answer("Content-Length", "64")
        self.wfile.write(total.hexdigest().encode())

    def do_GET(self):
        if self.path == "/go":
            go.release()
            self.answer("Content-Length", "0")
            return
        while go.acquire(blocking=False):
            pass
        self.answer("Transfer-Encoding", "chunked")
        self.wfile.write(b"4\r\none\n\r\n")
        go.acquire()
        self.wfile.write(b"4\r\ntwo\n\r\n0\r\n\r\n")

    def answer(self, name, value):
        self.send_response(200)
        self.send_header(name, value)
        self.end_headers()


http.server.ThreadingHTTPServer(("", 9100), Handler).serve_forever()
