"""Take one safeguard away at a time, and see the suite go red."""
