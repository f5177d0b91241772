"""IR text: every dialect of it to graphs, and back byte for byte.

Reading
    parser              text -> module
    detect              the dialect of a graph
    reader              one graph: header, blocks, statements; listing: one graph of the first weeks of 2017, without a header
    fast                lines of nodes in canonical form; nodes: all other forms
    lexer, cursor       the ends of names, types and lists; a position in a text
    uses                lists of uses, which follow nodes in texts of 2017
    tensor_line         the arrays of small constants that a text rounds or leaves out: read and printed
Printing
    printer             graphs -> text
    layout              parts of a text that are not canonical; tidy: the same graph in canonical text
    shown_types         printed text with short types, or none
Conversion
    dialect_conversion  a graph as torch printed it in another period
    argument_form       arguments as attributes (early 2018) and as operands
    old_meaning         operators whose operands or results were different in 2018
"""
