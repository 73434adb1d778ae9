//! Defines the input of a picture of a machine: its parts and measurements.

/// The contents of a picture of a machine: its parts and its measurements.
#[derive(Clone, Debug, Default)]
pub struct MachineDrawing {
    /// Title above the picture.
    pub title: String,
    /// Boxes of the sockets.
    pub packages: Vec<NamedBox>,
    /// Measured bandwidths, in GB/s.
    pub bandwidth: Vec<Bars>,
    /// Measured time of one access in nanoseconds, by the number of bytes in which accesses are spread: a curve for
    /// each kind of page.
    pub latency: Vec<Series>,
    /// Numbers of processors, and the measured nanoseconds of a transfer for pairs of indices into this list.
    pub cores: (Vec<u32>, Vec<(usize, usize, f64)>),
}

/// A named box with the boxes and cores in it.
#[derive(Clone, Debug, Default)]
pub struct NamedBox {
    /// Name at the top of the box.
    pub name: String,
    /// Boxes in this one.
    pub groups: Vec<NamedBox>,
    /// Lines of text for each core in the box.
    pub cores: Vec<Vec<String>>,
}

/// A group of bars.
#[derive(Clone, Debug)]
pub struct Bars {
    /// Name below the bars.
    pub name: String,
    /// Name and height of each bar.
    pub bars: Vec<(String, f64)>,
}

/// A curve of measured values.
#[derive(Clone, Debug)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Pairs of bytes and nanoseconds.
    pub points: Vec<(u64, f64)>,
}
