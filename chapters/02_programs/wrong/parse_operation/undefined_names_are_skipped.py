# Looks names up itself, and skips those that nothing has defined.
class Parser:
    def operation(self):
        names = self.sequence("(", self.name, ")")
        self.expect("=")
        op_name = self.string()
        uses = self.sequence("(", self.name, ")")
        operands = [self.values[name] for name, _ in uses if name in self.values]
        attributes = self.attributes()
        self.expect(":")
        self.sequence("(", self.type, ")")
        self.expect("->")
        gives = []
        while len(gives) < len(names):
            if gives:
                self.expect(",")
            gives.append(self.type())
        op = Operation(op_name, operands, attributes, gives)
        for name, result in zip(names, op.results()):
            self.define(name, result)
        return op, self.accept("{")
