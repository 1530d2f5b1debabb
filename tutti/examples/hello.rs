//! The smallest program with two ports: ten units per rank that fire in turn, and a printer of
//! whatever arrives. Alone it talks to nobody; in a `.music` file it can be any application.

use tutti::{IndexMap, Indexing, InputOptions, InputPort, OutputOptions, PerEvent};

fn main() -> Result<(), tutti::Error> {
    let mut setup = tutti::setup()?;
    let (out, input) = (
        setup.publish_event_output("out")?,
        setup.publish_event_input("in")?,
    );
    let own = || IndexMap::linear(0, 10);
    setup.map_output(out, own()?, Indexing::Global, OutputOptions::default())?;
    setup.map_input(input, own()?, Indexing::Global, InputOptions::default())?;

    let mut print = PerEvent(|_: InputPort, event: tutti::Event| println!("{event:?}"));
    let mut runtime = setup.start(0.01, &mut print)?;
    for id in (0..10).cycle().take(100) {
        let now = runtime.time();
        runtime.insert_event(out, now, id);
        runtime.tick(&mut print)?;
    }
    runtime.finalize(&mut print)?;
    Ok(())
}
