"""Admin pages of mails and text messages: their texts and their providers."""
