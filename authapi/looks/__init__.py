"""The looks of a tenant's pages: themes, readable colors, fonts, pictures, and the style sheet made from them."""
