"""Mails and text messages to users: what they say (templates), who sends them (providers, senders), and jobs that send them once."""
