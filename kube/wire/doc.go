// SPDX-License-Identifier: Apache-2.0

// Package wire owns the two ways to send the writes that each scheduled pod costs: its bind and its event.
//
//   - Typed: client-go's typed clients.
//   - Prepared: requests that are prepared once per kind, through the same client-go transport, which authenticates,
//     rotates certificates, uses proxies and speaks HTTP/2. The answer to a write that succeeded is not decoded.
//
// Both send the same bytes and return the same errors; TestBothWaysSendTheSame and TestBothWaysFailAlike compare them.
//
// Rejected: pooled buffers for bodies. A transport may read a body after it has returned its answer, and may ask for
// the body again, so a buffer would need a count of its readers; one allocation of the right size is cheaper.
// Rejected: one header for all requests, because a plugin for credentials writes into the header of the request.
package wire
