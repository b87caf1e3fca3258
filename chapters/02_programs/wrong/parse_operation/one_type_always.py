# Expects one type behind the arrow, whatever the number of results: an output has none.
class Parser:
    def operation(self):
        names = self.sequence("(", self.name, ")")
        self.expect("=")
        op_name = self.string()
        operands = self.sequence("(", self.use, ")")
        attributes = self.attributes()
        self.expect(":")
        self.space()
        start = self.pos
        takes = self.sequence("(", self.type, ")")
        if takes != [v.type() for v in operands]:
            raise self.error("the operands' types", f"({', '.join(map(str, takes))})", start)
        self.expect("->")
        op = Operation(op_name, operands, attributes, [self.type()])
        for name, result in zip(names, op.results()):
            self.define(name, result)
        return op, self.accept("{")
