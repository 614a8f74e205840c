// SPDX-License-Identifier: Apache-2.0

// Package gangs compares ways to schedule gangs on small workloads that hurt some of them. It owns the workloads, named after
// the issues that report the wounds, what is measured of them, and a run of the engine on virtual time. Whoever plays them on
// a real cluster is above.
package gangs
