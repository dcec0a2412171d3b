"""
A LangChain agent whose payment is executed once, after somebody looked at it, whatever is killed or repeated.

    uv run python examples/agent_with_effects.py

The model here says what it is told to say; give `create_agent` any other.
"""

from datetime import timedelta

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from checkpointing import open_journal
from graph import answer, durable, thread
from nodes import EffectTools
from tools import Receiver, effect

STRIPE_LIKE = Receiver(honours_keys=True, key_life=timedelta(hours=22))  # Stripe promises 24


@effect(receiver=STRIPE_LIKE, name="pay", once=lambda arguments: arguments["claim_id"])
def pay(*, claim_id: str, amount: int, key: str) -> dict:
    """Pay *amount* cents for a claim."""
    print(f"paying {amount} cents for claim {claim_id} under key {key}")
    return {"paid": amount}


class Model(BaseChatModel):
    """Wants to pay the claim, and says so when it was paid."""

    @property
    def _llm_type(self) -> str:
        return "example"

    def bind_tools(self, _tools, **_options):
        """Take any tools."""
        return self

    def _generate(self, messages, *_args, **_options) -> ChatResult:
        if isinstance(messages[-1], ToolMessage):
            said = AIMessage(f"The bank says: {messages[-1].content}")
        else:
            wanted = {"id": "call_1", "name": "pay", "args": {"claim_id": "0042", "amount": 184_000}}
            said = AIMessage("", tool_calls=[wanted])
        return ChatResult(generations=[ChatGeneration(message=said)])


def main(url: str = "sqlite:///agent.db") -> None:
    """Let the agent ask for its payment, approve it, and submit the same again; all of it may be repeated."""
    hello = {"messages": [HumanMessage("Please settle claim 0042.", id="hello")]}
    with open_journal(url) as journal:
        review = HumanInTheLoopMiddleware({"pay": True}, interrupt_mode="per_call")
        agent = create_agent(Model(), middleware=[review, EffectTools(journal, [pay])])
        graph = durable(agent, journal)

        parked = graph.invoke(hello, thread("chat-0042", principal="intake"))
        for question in parked.get("__interrupt__", ()):
            print(f"{question.value['name']} with {question.value['args']}?")
            graph.invoke(answer(question, {"type": "approve"}), thread("chat-0042", principal="adjuster-17"))
        done = graph.invoke(hello, thread("chat-0042"))
        print(done["messages"][-1].content)


if __name__ == "__main__":
    main()
