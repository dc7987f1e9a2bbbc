"""How a tenant looks to its users: themes, colors that can be read, fonts, pictures, and the style sheet made of them."""
