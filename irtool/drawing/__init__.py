"""Graphs as pictures: what `irtool show` draws.

    labels       the texts in the box of a node: kind, results, literal arguments
    scenes       a graph as boxes and edges; large graphs folded by scope or by runs of nodes
    layers       places for the boxes of one scene: layers from top to bottom, few crossings
    svg          a scene as SVG
    dot          a graph as DOT, for Graphviz
    escaping     texts of files in SVG, HTML and JSON: the one place
    lines        the text of a module, a line per node, and what a pass changed in it
    run_values   statistics of the values of a run, and the time of each node
    notebook     what notebooks show of graphs, runs, reports and tensors
    page         the page: all of it in one file of HTML
"""
