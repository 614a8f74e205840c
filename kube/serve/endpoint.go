// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"net"
	"strconv"
)

// Endpoint is where a scheduler serves.
type Endpoint struct {
	Address string // host:port
	CA      []byte // PEM; empty when the certificate is signed by an authority that the system trusts
}

// Port is the port of the endpoint, 0 where there is none.
func (e Endpoint) Port() int {
	_, text, _ := net.SplitHostPort(e.Address)
	port, _ := strconv.Atoi(text)
	return port
}
