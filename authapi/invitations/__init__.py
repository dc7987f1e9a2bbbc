"""Creates, mails and accepts invitations to organizations."""
