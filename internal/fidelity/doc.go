// SPDX-License-Identifier: Apache-2.0

// Command fidelity compares simulated runs with recorded ones, and writes the result into docs/simulator.md. For each
// size it records three workloads on the local cluster with one seed, fits a model to them, records the same workloads
// with another seed, and simulates these under the model.
//
//	go run ./internal/fidelity --nodes 1000,5000 --train 1 --test 2
//
// Recordings and results are kept in a directory: after an abort, the same command goes on, and other sizes are added
// to the page by another one. Recordings of an older scheduler are not noticed: --again makes them anew.
//
// Rejected: measuring waits by a watch of this program. It creates the pods too, and sees them up to a second late
// while it does; the scheduler's own recording has both ends of a wait from one process.
package main
