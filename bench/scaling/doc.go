// SPDX-License-Identifier: Apache-2.0

// Package scaling owns fits of throughput to a number of workers: Amdahl's law and the universal scalability law (USL).
//
//	Amdahl: X(N) = λN / (1 + σ(N-1))
//	USL:    X(N) = λN / (1 + σ(N-1) + κN(N-1))
//
// λ is the throughput of one worker, σ the serial share (contention) and κ the cost of workers that wait for each other
// (coherency). Sources: G. M. Amdahl, "Validity of the single processor approach to achieving large scale computing
// capabilities", AFIPS 1967; N. J. Gunther, "Guerrilla Capacity Planning", Springer 2007, chapters 4 to 6.
//
// N/X is linear in 1/λ, σ/λ and κ/λ, so the least squares of relative residuals have a closed form: each equation is
// multiplied by X/N. Intervals are of 95 %: from the covariance of the linear parameters, by the delta method for the
// quotients, with quantiles of Student's distribution.
//
// A fit is not identifiable if there are too few different N, if the equations do not determine the parameters, or if
// the interval of σ is wider than all values that it can have. Then it has a reason and no parameters. A law that
// clearly does not describe the data, such as throughput that grows faster than N, says so.
//
// Rejected: a search for the smallest residual. It needs a start and a bound, and gives parameters where the data do
// not.
package scaling
