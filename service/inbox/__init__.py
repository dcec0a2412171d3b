"""The inbox: server-rendered pages for the people who decide, and for those who look after the runs."""
