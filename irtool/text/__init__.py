"""IR text: every dialect of it to graphs, and back byte for byte.

Reading
    parser              text -> module
    detect              which dialect a graph is written in
    reader              one graph: header, blocks, statements; listing: one graph of the first weeks of 2017, without a header
    fast                lines of nodes in canonical form; nodes: all other forms
    lexer, cursor       where names, types and lists end; a place in a text
    uses                lists of uses, which texts of 2017 have behind nodes
    tensor_line         the arrays of small constants that a text rounds or leaves out: read and printed
Printing
    printer             graphs -> text
    layout              what a text spells differently from the canonical form; tidy: the same graph without that
    shown_types         printed text with short types, or none
Other periods
    dialect_conversion  a graph as another period would have printed it
    argument_form       arguments as attributes (early 2018) and as operands
    old_meaning         operators that took or gave something else in 2018
"""
