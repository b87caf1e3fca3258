# Defines the first result, and forgets that there may be several.
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
        gives = []
        while len(gives) < len(names):
            if gives:
                self.expect(",")
            gives.append(self.type())
        op = Operation(op_name, operands, attributes, gives)
        if names:
            self.define(names[0], op.result(0))
        return op, self.accept("{")
