"""Admin pages of mails and text messages: what they say, and who sends them."""
