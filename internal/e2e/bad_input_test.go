// SPDX-License-Identifier: Apache-2.0

package e2e

// Bad input on a real API server: the pod waits with a clear reason, and others go on.
