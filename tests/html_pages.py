"""Pages of HTML, read as strictly as they should be written."""

import html.parser


class WellFormed(html.parser.HTMLParser):
    """Fails on a tag that is not closed, and collects text and attributes."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.attributes = [], [], []

    def handle_starttag(self, tag, attrs):
        self.attributes += attrs
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def parsed(page):
    parser = WellFormed()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    return parser
