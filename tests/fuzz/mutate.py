"""Models from strangers: valid ones with some of their parts changed, by the parts' meaning (shapes, types, values, attributes, names,
declared shapes, functions, opsets, external data), seldom by bytes. Most still load; those are the ones that find something."""

from __future__ import annotations

import random
from collections.abc import Iterator

import onnx
from onnx import AttributeProto, TensorProto, helper

EXTENTS = (0, 0, 1, 1, 2, 3, 4, 7, 8, 16, 64, 1000, 65537, -1, -2, 1 << 20, (1 << 31) - 1, 1 << 31, 1 << 40, (1 << 62) + 1, (1 << 63) - 1, -(1 << 63))
SMALL = (0, 1, 2, 3, -1, -2, 4, 5, 8)
INTS = SMALL + SMALL + EXTENTS
FLOATS = (0.0, -0.0, 0.5, 1.0, -1.0, 2.0, 1e-30, 1e30, float("inf"), float("-inf"), float("nan"))
TYPES = (1, 1, 1, 2, 3, 6, 7, 7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 21, 22, 23, 0, 99)
STRINGS = (b"", b"mean", b"constant", b"reflect", b"linear", b"nearest", b"SAME_UPPER", b"NOTSET", b"none", b"add", b"ij,jk->ik", b"\xff", b"x" * 300)


class Mutator:
    def __init__(self, seed: int, seeds: list[bytes]):
        self.dice = random.Random(seed)
        self.seeds = seeds

    def models(self) -> Iterator[bytes]:
        """One of the seeds, after each of a few changes."""
        d = self.dice
        m = onnx.ModelProto.FromString(d.choice(self.seeds))
        for _ in range(d.choice((1, 2, 3, 4, 5))):
            d.choice(self.CHANGES)(self, m)
            yield self.damaged(m.SerializeToString())

    def damaged(self, data: bytes) -> bytes:
        """Seldom other bytes, too."""
        d = self.dice
        if d.random() < 0.04 and data:
            data = bytearray(data)
            for _ in range(d.randint(1, 3)):
                data[d.randrange(len(data))] = d.choice((0, 1, 0x7F, 0x80, 0xFF, d.randrange(256)))
            data = bytes(data)
        return data

    # ---- Where ----

    def graphs(self, m: onnx.ModelProto) -> list:
        """Graphs and functions, nested ones too."""
        found = [m.graph, *m.functions]
        for g in found:
            for n in g.node:
                for a in n.attribute:
                    found.extend([a.g] if a.type == AttributeProto.GRAPH else a.graphs)
        return found

    def graph(self, m):
        return self.dice.choice(self.graphs(m))

    def real_graph(self, m):
        return self.dice.choice([g for g in self.graphs(m) if isinstance(g, onnx.GraphProto)])

    def node(self, m):
        nodes = [n for g in self.graphs(m) for n in g.node]
        return self.dice.choice(nodes) if nodes else None

    def names(self, m) -> list[str]:
        g = self.graph(m)
        out = [o for n in g.node for o in n.output] + [i for n in g.node for i in n.input]
        return out or [""]

    def tensors(self, m) -> list[TensorProto]:
        out = []
        for g in self.graphs(m):
            if isinstance(g, onnx.GraphProto):
                out.extend(g.initializer)
                out.extend(s.values for s in g.sparse_initializer)
            out.extend(a.t for n in g.node for a in n.attribute if a.type == AttributeProto.TENSOR)
        return out

    # ---- What ----

    def declared(self, m):
        """A declared shape or type."""
        d, g = self.dice, self.real_graph(m)
        infos = [*g.input, *g.output, *g.value_info]
        if not infos:
            return
        t = d.choice(infos).type
        what = d.randrange(7)
        if not t.HasField("tensor_type") or what == 0:
            kind = helper.make_tensor_type_proto(d.choice(TYPES), None if d.random() < 0.3 else [d.choice((1, 2, "n", None)) for _ in range(d.randint(0, 3))])
            t.CopyFrom(kind if d.random() < 0.6 else helper.make_sequence_type_proto(kind) if d.random() < 0.5 else helper.make_optional_type_proto(kind))
            return
        dims = t.tensor_type.shape.dim
        if what == 1:
            t.tensor_type.elem_type = d.choice(TYPES)
        elif what == 2:
            t.tensor_type.ClearField("shape")
        elif what == 3 or not dims:
            dims.add().dim_value = d.choice(EXTENTS)
        elif what == 4:
            del dims[d.randrange(len(dims))]
        elif what == 5:
            d.choice(dims).dim_param = d.choice(("n", "m", "", "?", "batch", "n*2", "x" * 200))
        else:
            d.choice(dims).dim_value = d.choice(EXTENTS)

    def reveal(self, m):
        """A type for a value inside, true or not."""
        g = self.real_graph(m)
        name = self.dice.choice(self.names(m))
        g.value_info.append(helper.make_tensor_value_info(name, self.dice.choice(TYPES[:-2]), [self.dice.choice(EXTENTS + ("n",)) for _ in range(self.dice.randint(0, 4))]))

    def tensor(self, m):
        d, all_ = self.dice, self.tensors(m)
        if not all_:
            return
        t = d.choice(all_)
        what = d.randrange(8)
        if what == 0:
            t.data_type = d.choice(TYPES)
        elif what == 1 and t.dims:
            t.dims[d.randrange(len(t.dims))] = d.choice(EXTENTS)
        elif what == 2:
            t.dims.append(d.choice(EXTENTS))
        elif what == 3 and t.dims:
            del t.dims[d.randrange(len(t.dims))]
        elif what == 4 and t.raw_data:
            t.raw_data = t.raw_data[: d.randrange(len(t.raw_data))]
        elif t.raw_data:
            raw = bytearray(t.raw_data)
            if t.data_type == TensorProto.INT64 and len(raw) % 8 == 0:
                at = 8 * d.randrange(len(raw) // 8)
                raw[at:at + 8] = (d.choice(INTS) & (1 << 64) - 1).to_bytes(8, "little")
            else:
                at = d.randrange(len(raw))
                raw[at] = d.choice((0, 1, 0x7F, 0x80, 0xFF))
            t.raw_data = bytes(raw)
        elif t.int64_data:
            t.int64_data[d.randrange(len(t.int64_data))] = d.choice(INTS)
        elif t.int32_data:
            t.int32_data[d.randrange(len(t.int32_data))] = d.choice(SMALL)

    def external(self, m):
        d, all_ = self.dice, self.tensors(m)
        if all_:
            t = d.choice(all_)
            t.data_location = TensorProto.EXTERNAL
            for key, value in (("location", d.choice(("w.bin", "/etc/passwd", "../x", "", "a/b", "/dev/zero"))), ("offset", str(d.choice(INTS))), ("length", str(d.choice(INTS)))):
                if d.random() < 0.8:
                    t.external_data.add(key=key, value=value)
            if d.random() < 0.5:
                t.ClearField("raw_data")

    def attribute(self, m):
        d, n = self.dice, self.node(m)
        if n is None or not n.attribute:
            return
        a = d.choice(n.attribute)
        what = d.randrange(10)
        if what == 0:
            n.attribute.remove(a)
        elif what == 1:
            a.type = d.choice((1, 2, 3, 4, 5, 6, 7, 8, 0, 14))
        elif what == 2:
            a.ref_attr_name = d.choice(("a0", "axis", "nonesuch"))
        elif what == 3:
            n.attribute.add().CopyFrom(a)
        elif a.type == AttributeProto.INT:
            a.i = d.choice(INTS)
        elif a.type == AttributeProto.FLOAT:
            a.f = d.choice(FLOATS)
        elif a.type == AttributeProto.STRING:
            a.s = d.choice(STRINGS)
        elif a.type == AttributeProto.INTS:
            if a.ints and what < 7:
                a.ints[d.randrange(len(a.ints))] = d.choice(INTS)
            elif a.ints and what < 9:
                del a.ints[d.randrange(len(a.ints))]
            else:
                a.ints.extend([d.choice(INTS)] * d.choice((1, 1, 2, 40)))
        elif a.type == AttributeProto.FLOATS and a.floats:
            a.floats[d.randrange(len(a.floats))] = d.choice(FLOATS)

    def new_attribute(self, m):
        d, n = self.dice, self.node(m)
        if n is not None:
            name = d.choice(("axis", "axes", "keepdims", "perm", "to", "alpha", "pads", "strides", "kernel_shape", "group", "mode", "p", "k", "value", "num_outputs",
                             "hidden_size", "direction", "epsilon", "equation", "dilations", "auto_pad", "block_size", "num_heads", "scale", "largest"))
            value = d.choice((lambda: d.choice(INTS), lambda: [d.choice(SMALL) for _ in range(d.randint(1, 5))], lambda: d.choice(FLOATS[:8]), lambda: d.choice(STRINGS)))()
            n.attribute.append(helper.make_attribute(name, value))

    def operator(self, m):
        """Another operator with these operands."""
        d, n = self.dice, self.node(m)
        other = self.node(onnx.ModelProto.FromString(d.choice(self.seeds)))
        if n is not None and other is not None:
            n.op_type, n.domain = other.op_type, other.domain
            if d.random() < 0.5:
                del n.attribute[:]
                n.attribute.extend(other.attribute)

    def operands(self, m):
        d, n = self.dice, self.node(m)
        if n is None:
            return
        what = d.randrange(8)
        if what == 0 and n.input:
            n.input[d.randrange(len(n.input))] = ""
        elif what == 1 and n.input:
            del n.input[d.randrange(len(n.input))]
        elif what == 2:
            n.input.append(d.choice(self.names(m)))
        elif what == 3 and n.output:
            n.output[d.randrange(len(n.output))] = ""
        elif what == 4:
            n.output.append(f"more{d.randrange(100)}")
        elif what == 5 and n.output:
            del n.output[d.randrange(len(n.output))]
        elif n.input:
            n.input[d.randrange(len(n.input))] = d.choice(self.names(m))

    def nodes(self, m):
        d, g = self.dice, self.graph(m)
        if not g.node:
            return
        at = d.randrange(len(g.node))
        what = d.randrange(4)
        if what == 0:
            del g.node[at]
        elif what == 1:
            twin = g.node.add()
            twin.CopyFrom(g.node[at])
            for i, o in enumerate(twin.output):
                twin.output[i] = f"{o}_twin" if o else ""
        elif what == 2:
            other = onnx.ModelProto.FromString(d.choice(self.seeds))
            for n in list(other.graph.node)[:2]:
                new = g.node.add()
                new.CopyFrom(n)
                for i in range(len(new.input)):
                    if d.random() < 0.7:
                        new.input[i] = d.choice(self.names(m))
        else:
            order = list(g.node)
            d.shuffle(order)
            order = [onnx.NodeProto.FromString(n.SerializeToString()) for n in order]
            del g.node[:]
            g.node.extend(order)

    def ends(self, m):
        d, g = self.dice, self.real_graph(m)
        what = d.randrange(5)
        if what == 0 and g.output:
            del g.output[d.randrange(len(g.output))]
        elif what == 1:
            g.output.add().name = d.choice(self.names(m))
        elif what == 2 and g.input:
            del g.input[d.randrange(len(g.input))]
        elif what == 3:
            g.input.append(helper.make_tensor_value_info(d.choice((*self.names(m)[:4], "new")), d.choice(TYPES[:-2]), [d.choice(SMALL) for _ in range(d.randint(0, 3))]))
        elif g.output and g.input:
            g.output[d.randrange(len(g.output))].name = d.choice(g.input).name

    def rename(self, m):
        d, g = self.dice, self.real_graph(m)
        things = [*g.initializer, *g.input, *g.output]
        if things:
            d.choice(things).name = d.choice((*self.names(m), "", "x" * 100, "\u00fc"))

    def opset(self, m):
        d = self.dice
        if m.opset_import and d.random() < 0.8:
            o = d.choice(m.opset_import)
            if d.random() < 0.8:
                o.version = d.choice((*range(1, 30), 0, -1, 99, 1 << 40))
            else:
                m.opset_import.remove(o)
        elif d.random() < 0.5:
            m.opset_import.add(domain=d.choice(("", "com.microsoft", "ai.onnx.ml", "local", "x.y")), version=d.choice((1, 2, 5)))
        else:
            m.ir_version = d.choice((0, 1, 2, 3, 4, 7, 8, 10, 13, 99))

    def function(self, m):
        d = self.dice
        if not m.functions:
            n = self.node(m)
            if n is None or not n.output:
                return
            op, domain = n.op_type, d.choice(("local", n.domain))
            body = helper.make_node(op, [f"p{i}" for i in range(len(n.input))], [f"r{i}" for i in range(len(n.output))], domain=n.domain)
            body.attribute.extend(n.attribute)
            m.functions.append(helper.make_function(domain, op, list(body.input), list(body.output), [body], list(m.opset_import)))
            n.domain = domain
            return
        f = d.choice(m.functions)
        what = d.randrange(6)
        if what == 0 and f.input:
            del f.input[d.randrange(len(f.input))]
        elif what == 1 and f.output:
            del f.output[d.randrange(len(f.output))]
        elif what == 2:
            f.node.append(helper.make_node(f.name, list(f.input), ["again"], domain=f.domain))
        elif what == 3:
            m.functions.add().CopyFrom(f)
        elif what == 4 and f.opset_import:
            d.choice(f.opset_import).version = d.choice((1, 9, 13, 18, 99))
        else:
            f.attribute.append(d.choice(("a0", "alpha", "axis")))

    def sparse(self, m):
        d, g = self.dice, self.real_graph(m)
        if g.initializer:
            t = d.choice(g.initializer)
            n = d.randint(0, 3)
            s = g.sparse_initializer.add()
            s.values.CopyFrom(helper.make_tensor(t.name, d.choice((1, 7)), [n], [1] * n))
            shape = d.choice(([n], [n, 2], [0]))
            s.indices.CopyFrom(helper.make_tensor("", 7, shape, [d.choice(SMALL) for _ in range(shape[0] * (shape + [1])[1])]))
            s.dims.extend(d.choice(EXTENTS) for _ in range(d.randint(1, 2)))
            g.initializer.remove(t)

    def default(self, m):
        """An initializer that is an input, too."""
        g = m.graph
        if g.initializer:
            t = self.dice.choice(g.initializer)
            g.input.append(helper.make_tensor_value_info(t.name, t.data_type, [self.dice.choice((x, "n")) for x in t.dims] if self.dice.random() < 0.8 else None))

    CHANGES = (declared, declared, declared, reveal, tensor, tensor, tensor, attribute, attribute, attribute, new_attribute, operator, operator, operands,
               operands, nodes, nodes, ends, rename, opset, function, external, sparse, default)
