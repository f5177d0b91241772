"""Running graphs: plans, executors, gradients.

What users call
    run             irtool.run and irtool.vjp: the interpreter first, an executor when inputs of the same dtypes and ranks come again
    executor        a plan per spec of inputs, compiled when first needed and cached
    jit             a Python function traced once for each path it takes
    jit_arguments   the signature of a call's arguments, and memory that arguments share
    jit_surroundings  what the function reads from outside its arguments
    jit_reached     one walk over what a function reaches
    jit_reads       the names in code
    jit_trace       one call, traced
    jit_results     the results of a call, and its writes into its arguments
    jit_layers      a call inside a transformation: the Python function runs
    jit_variants    the traces of a function, in a tree of the decisions that they depend on
    jit_graphs      jit of a graph, which needs no trace
Making plans
    argument_spec   the key of a plan: dtypes and ranks of inputs, and which need a gradient
    objects         class instances among the inputs
    phases          which passes make a plan, in which order
    backends        the protocol of what compiles graphs for one kind of arrays: NumPy, CuPy
    compilation     one compilation, with gradients where the spec asks for them
    profiling       one plan for exactly the shapes that were seen, behind a guard
    mixed_dtypes    whether operators with several floating dtypes can occur in a graph
    fusing          which pointwise operators become a group
    fusion          running such a group: block by block, or as a loop in C
    written_out     recurrent operators as loops over time
Gradients
    graph_gradients differentiate a graph, run f, run df
    pairs           running a gradient pair read from a file
    joint_plan      f and df compiled as one graph
    output_cotangents  which gradient of which output belongs to which tensor
    recording       the tape of a run (`irtool.dispatch.autograd`), and how a graph runs on it
    differentiable  a node whose gradient is another graph: f and df, one entry of the tape
    tape_ahead      entries that other threads differentiate early
    recorded        a run that saves what its gradients need
Around them
    thread_pool     several threads
    fallbacks       warnings when a graph runs a slower way than was asked for
    disk_cache      a folder of bytes that outlives the process
    plan_cache      compiled functions in that folder
    debug_state     what an executor holds, as data
    tracing         a compiled graph called inside a trace
Folders, each with such a table
    plan            compiled plans
    native          loops in C
    device          CuPy
"""
