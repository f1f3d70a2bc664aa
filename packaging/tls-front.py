"""Ends TLS on a free port of loopback and hands the bytes on: tls-front.py CERTIFICATE KEY PORT. Prints its port."""

import asyncio
import ssl
import sys

context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain(sys.argv[1], sys.argv[2])


async def pump(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()


async def serve(reader, writer):
    behind = await asyncio.open_connection("127.0.0.1", int(sys.argv[3]))
    await asyncio.gather(pump(reader, behind[1]), pump(behind[0], writer), return_exceptions=True)


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
