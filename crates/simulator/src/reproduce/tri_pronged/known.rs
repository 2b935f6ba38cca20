//! Every claim, and what it is judged by.

use crate::reproduce::finding::Known;

const fn claim(id: &'static str, unit: &'static str, claim: &'static str) -> Known {
    Known { id, paper: None, unit, claim: Some(claim) }
}

/// Every claim of the paper; it prints no values, only curves.
pub const KNOWN: &[Known] = &[
    claim(
        "tri-pronged/fig3/best",
        "",
        "LIQ-PULL has the least mean wait of all decentralised variants at every gap from 2 to 3 s (ties within 1 s count); figure: at how many of the five gaps",
    ),
    claim(
        "tri-pronged/fig3/near_cent",
        "",
        "LIQ-PULL waits at most 1.5 times as long as CENT and 60 s, at every gap; figure: at how many of the five gaps",
    ),
    claim(
        "tri-pronged/fig3/pull_beats_push",
        "",
        "LI-PULL waits no longer than LI-PUSH, and LIQ-PULL no longer than LIQ-PUSH (ties within 1 s count); figure: of the ten pairs, how many",
    ),
    claim(
        "tri-pronged/fig3/li_like_liq",
        "",
        "I brings most of the gain over L: LI-PULL has at least half of what LIQ-PULL gains, at every gap; figure: the least part",
    ),
    claim(
        "tri-pronged/fig3/order_stable",
        "",
        "the order of variants is the same at all gaps, but that L is worse than Vanilla at 2 s; figure: at how many gaps the order is that of 3 s",
    ),
    claim(
        "tri-pronged/text/push_light",
        "s",
        "in a lightly loaded grid (a gap of 8 s) PUSH waits no longer than PULL; figure: what LI-PULL and LIQ-PULL wait longer, on average",
    ),
    claim(
        "tri-pronged/fig4a/count",
        "messages a minute",
        "at 2 s L and both PUSH send as many messages as Vanilla (within a tenth), both PULL more, and these 10 to 30 a minute and node; figure: LIQ-PULL",
    ),
    claim(
        "tri-pronged/fig4b/volume",
        "",
        "the volume of every variant is within a tenth of that of Vanilla, at 2 s; figure: the most that one differs, as a part",
    ),
    claim(
        "tri-pronged/fig5/order",
        "",
        "LIQ-PULL waits least of all decentralised variants and Vanilla or L most, at 20 to 80 % constraints; figure: at how many of the four",
    ),
    claim(
        "tri-pronged/fig5/high",
        "s",
        "LIQ-PULL is further from CENT at 80 % constraints than at 20 %; figure: how much further",
    ),
    claim(
        "tri-pronged/text/other_mixes",
        "",
        "clustered and mixed machines and jobs give a similar picture: LIQ-PULL waits least in all four combinations (gap of 2.5 s, ties within 1 s count); figure: in how many of the four",
    ),
    claim(
        "tri-pronged/text/bounded",
        "h",
        "no job starves: all start, in all runs; figure: the longest wait with LIQ-PULL at 2 s",
    ),
    claim(
        "tri-pronged/beyond/long/best",
        "s",
        "in steady state (the middle 60 % of four times as many jobs) LIQ-PULL waits least of the decentralised, at gaps of 2 to 4 s (ties within 1 s count); figure: its wait at 2 s",
    ),
    claim(
        "tri-pronged/beyond/long/near_cent",
        "",
        "and at most 1.5 times as long as CENT and 60 s, at each gap; figure: its wait over that of CENT at 2 s",
    ),
    claim(
        "tri-pronged/beyond/light/push",
        "",
        "with gaps from 4 to 16 s PUSH waits no longer than PULL (ties within 1 s do not count as shorter); figure: at how many of the ten pairs it waits at least 1 s less",
    ),
    claim(
        "tri-pronged/beyond/scale/messages",
        "",
        "messages a minute and node do not grow with the grid at equal load per node (by at most a tenth); figure: those of the largest over those of the smallest",
    ),
    claim(
        "tri-pronged/beyond/scale/wait",
        "",
        "nor does the mean wait until ten minutes after the last job (by at most a tenth, or 1 s); figure: that of the largest over that of the smallest",
    ),
    claim(
        "tri-pronged/beyond/scale/neighbours",
        "",
        "nor does it where searches have no shortcuts, as in the papers; figure: that of the second grid over that of the smallest",
    ),
    claim(
        "tri-pronged/beyond/trace/best",
        "s",
        "with cores and memory as in the trace given, or in a made-up sample if none is, LIQ-PULL waits least of the decentralised (ties within 1 s count); figure: its wait",
    ),
    claim(
        "tri-pronged/beyond/trace/near_cent",
        "",
        "and at most 1.5 times as long as CENT and 60 s; figure: its wait over that of CENT",
    ),
    claim(
        "tri-pronged/beyond/estimates/exact",
        "",
        "where all jobs have exact estimates, L and LIQ-PULL wait less than without; figure: the wait of LIQ-PULL over that without",
    ),
    claim(
        "tri-pronged/beyond/estimates/half",
        "",
        "the same where every second job has one; figure: the wait of LIQ-PULL over that without",
    ),
    claim(
        "tri-pronged/beyond/estimates/wrong",
        "",
        "estimates that are wrong by up to a factor of three either way do no harm: L and LIQ-PULL wait at most a tenth longer than without; figure: the wait of LIQ-PULL over that without",
    ),
    claim(
        "tri-pronged/beyond/estimates/longest",
        "",
        "with any of these estimates the longest wait is at most a tenth longer than without, for L and LIQ-PULL; figure: the largest of the six over that without",
    ),
    claim(
        "tri-pronged/beyond/dual/wait",
        "",
        "with a second CAN of what is left of machines L and LIQ-PULL wait at most a tenth longer than with balloons, at gaps of 2 and 4 s; figure: the wait of LIQ-PULL at 2 s over that with balloons",
    ),
    claim(
        "tri-pronged/beyond/dual/messages",
        "",
        "and send at most a tenth more messages; figure: those of LIQ-PULL at 2 s over those with balloons",
    ),
];
