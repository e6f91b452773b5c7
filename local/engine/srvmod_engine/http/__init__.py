"""A small HTTP/1.1 server on asyncio and httptools, made for many slow streams of tiny chunks."""
