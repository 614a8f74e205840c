// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"net"
	"sync"
)

// gate lets bytes of all connections through, or none. While it is shut, connections stay as they are: what was
// sent waits in the kernel, as on a network that loses packets.
type gate struct {
	mu   sync.Mutex
	shut chan struct{} // closed when the gate opens again; nil while it is open
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == nil {
		g.shut = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		close(g.shut)
		g.shut = nil
	}
}

// pass waits until the gate is open, or until ended closes.
func (g *gate) pass(ended <-chan struct{}) error {
	for {
		g.mu.Lock()
		shut := g.shut
		g.mu.Unlock()
		if shut == nil {
			return nil
		}
		select {
		case <-shut:
		case <-ended:
			return net.ErrClosed
		}
	}
}

// gatedListener gives out connections that pass by a gate.
type gatedListener struct {
	net.Listener
	gate *gate
}

// Accept implements net.Listener.
func (l gatedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &gatedConn{Conn: c, gate: l.gate, ended: make(chan struct{})}, nil
}

type gatedConn struct {
	net.Conn
	gate  *gate
	ended chan struct{}
	once  sync.Once
}

// Read implements net.Conn. What arrived while the gate was shut is given out when it opens.
func (c *gatedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if blocked := c.gate.pass(c.ended); blocked != nil {
		return 0, blocked
	}
	return n, err
}

// Write implements net.Conn.
func (c *gatedConn) Write(p []byte) (int, error) {
	if err := c.gate.pass(c.ended); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// Close implements net.Conn.
func (c *gatedConn) Close() error {
	c.once.Do(func() { close(c.ended) })
	return c.Conn.Close()
}
