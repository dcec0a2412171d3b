"""
A claim on an Agent Server: intake submits it, an adjuster approves it, and it is paid once.

    python examples/agent_server_client.py 0042

The server and the two tokens are those of docs/agent-server.md; the claim must be filed at the claims system.
"""

import asyncio
import os
import sys

from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

URL = os.environ.get("AGENT_SERVER_URL", "http://127.0.0.1:2024")


def client_of(token: str) -> LangGraphClient:
    """Return a client of whoever has this token."""
    return get_client(url=URL, headers={"authorization": f"Bearer {token}"})


async def main(claim_id: str) -> None:
    """Submit the claim on a new thread, and approve what it asks."""
    intake, adjuster = client_of(os.environ["INTAKE_TOKEN"]), client_of(os.environ["ADJUSTER_TOKEN"])
    async with intake, adjuster:
        thread = await intake.threads.create()
        state = await intake.runs.wait(thread["thread_id"], "claims", input={"claim_id": claim_id, "documents": []})
        if "__interrupt__" in state:
            request = state["__interrupt__"][0]["value"]
            print(f"approval {request['id']} asks about {request['payload']}")
            decision = {"approval": request["id"], "type": "approve", "payload_hash": request["payload_hash"]}
            state = await adjuster.runs.wait(thread["thread_id"], "claims", command={"resume": decision})
        print(f"{state['outcome']}: {state.get('payment')}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
