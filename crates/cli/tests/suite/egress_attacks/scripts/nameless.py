"""Asks for a page over TLS that names no host, by each way of getting there."""
import ssl, sys
from say import connection

place, host, *ways = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
for way in ways:
    try:
        named = place.encode().hex() if way == "socks" else place
        with context.wrap_socket(connection(way, named, 443)) as stream:
            stream.sendall(f"GET /page HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            print(way, stream.recv(4096).split()[1].decode())
    except OSError as error:
        print(way, getattr(error, "reason", None) or type(error).__name__)
