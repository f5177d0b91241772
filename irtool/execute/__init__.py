"""Running graphs: plans, executors, gradients.

What users call
    run             irtool.run and irtool.vjp: the reference first, an executor when inputs of a kind come again
    executor        a plan per kind of inputs, made when first needed and kept
    jit             a function traced once for each way it takes
    jit_arguments   what a trace holds for, and memory that arguments share
    jit_trace       one call, traced
    jit_results     what a run hands back, and writes into its arguments
    jit_variants    the traces of a function by what they were decided by
    jit_graphs      a graph as such a function
Making plans
    argument_spec   what a plan is made for: dtypes, ranks, what needs a gradient
    objects         class instances among the inputs
    phases          which passes make a plan, in which order
    compilation     one compilation, with gradients where the spec asks for them
    profiling       one plan for the very shapes that were seen, behind a guard
    mixed_dtypes    may several floating dtypes meet
    fusing          which pointwise operators become a group
    fusion          running such a group: block by block, or as a loop in C
Gradients
    graph_gradients differentiate a graph, run f, run df
    pairs           a pair that stands in a file
    joint_plan      forwards and backwards as one graph
    output_cotangents  which gradient of which output belongs to which tensor
    differentiable  the node that owns f and df
    tape            which function gave which value, and gradients handed back
    tape_ahead      steps of the tape that other threads walk back before it is their turn
    views           tensors in one memory, under writes
    recording       running a graph on the tape
    recorded        a run that remembers what its gradients need
Around them
    thread_pool     several threads
    fallbacks       what is run another way than it was to be says so
    disk_cache      bytes that are kept between processes
    plan_cache      compiled functions kept there
    debug_state     what an executor holds, as data
    tracing         a compiled graph called inside a trace
Folders, each with such a table
    plan            compiled plans
    native          loops in C
    device          CuPy
"""
