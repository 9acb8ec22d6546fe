"""The application's classes. The client finds an id in the attribute `Id`."""


class User:
    def __init__(self, name=None, age=None, company=None, tags=None, Id=None):
        self.Id = Id
        self.name = name
        self.age = age
        self.company = company
        self.tags = tags


class Company:
    def __init__(self, name=None, Id=None):
        self.Id = Id
        self.name = name


class Line:
    def __init__(self, product=None, count=0):
        self.product = product
        self.count = count


class Order:
    def __init__(self, company=None, lines=None, products=None, Id=None):
        self.Id = Id
        self.company = company
        self.lines = lines
        self.products = products


class Note:
    """Whatever is given as its content."""

    def __init__(self, content=None, Id=None):
        self.Id = Id
        self.content = content
