"""Asks an MCP server over stdio, and prints what it said as JSON: mcp_client.py COMMAND ARGUMENT..."""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


def text(result):
    return result.content[0].text


async def main(command, arguments):
    server = StdioServerParameters(command=command, args=arguments)
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        hello = await session.initialize()
        await session.send_ping()
        tools = await session.list_tools()
        found = await session.call_tool("search_sessions", {"query": "banyan"})
        listed = await session.call_tool("list_sessions", {})
        try:
            unknown = (await session.call_tool("burn", {})).is_error
        except Exception:
            unknown = True
    print(
        json.dumps(
            {
                "server": hello.server_info.name,
                "tools": sorted(tool.name for tool in tools.tools),
                "found": text(found),
                "listed": text(listed),
                "unknown_tool_is_an_error": unknown,
            }
        )
    )


asyncio.run(main(sys.argv[1], sys.argv[2:]))
