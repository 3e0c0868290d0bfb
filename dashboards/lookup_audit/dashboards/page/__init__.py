"""The built-in page: the same boards as HTML, drawn on the server, readable without a script."""
