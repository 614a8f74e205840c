// SPDX-License-Identifier: Apache-2.0

package e2e

// What extenders can do on a real API server: filter with names of nodes and with whole nodes, rank with a weight, bind,
// take care of resources, be ignored, and answer over TLS. The preempt verb has a client (host/extender) and nobody who
// calls it until preemption is built, so it has no story here.
