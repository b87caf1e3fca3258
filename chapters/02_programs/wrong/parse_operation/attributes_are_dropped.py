# Reads the attributes, and does not give them to the operation.
class Parser:
    def operation(self):
        names = self.sequence("(", self.name, ")")
        self.expect("=")
        op_name = self.string()
        operands = self.sequence("(", self.use, ")")
        self.attributes()
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
        op = Operation(op_name, operands, {}, gives)
        for name, result in zip(names, op.results()):
            self.define(name, result)
        return op, self.accept("{")
