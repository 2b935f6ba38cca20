//! What it costs to ask whether a machine will do: shapes that are compiled, and those that go to the interpreter.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use shoal_model::constraint::Constraint;
use shoal_model::{Machine, Resources};

fn evaluations(bench: &mut Criterion) {
    let mut machine = Machine::with_capacity(Resources::cores(8));
    machine.organisation = "physics".parse().ok();
    for text in ["cores >= 4", "org == \"physics\" && cores >= 4", "cores * 2 >= 8"] {
        let constraint: Constraint = text.parse().expect("a constraint");
        let how = if constraint.is_native() { "compiled" } else { "interpreted" };
        bench.bench_function(&format!("{text}, {how}"), |bench| {
            bench.iter(|| constraint.admits(black_box(&machine)));
        });
    }
}

criterion_group!(benches, evaluations);
criterion_main!(benches);
