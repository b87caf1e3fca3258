# Reads the operands' types and does not compare them with the operands: a text that contradicts itself is accepted.
class Parser:
    def operation(self):
        names = self.sequence("(", self.name, ")")
        self.expect("=")
        op_name = self.string()
        operands = self.sequence("(", self.use, ")")
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
