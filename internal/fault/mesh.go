// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Idle is what a Mesh does with a connection on which no bytes have passed for a while.
type Idle uint8

// The ends of an idle connection.
const (
	IdleClosed    Idle = iota // both sides get a FIN
	IdleReset                 // both sides get a RST
	IdleForgotten             // the server gets a RST; the client's side stays open, and what it sends is dropped
)

// String names the end of an idle connection.
func (i Idle) String() string { return [...]string{"closed", "reset", "forgotten"}[i] }

// Mesh passes connections on to one address, as the proxies of a service mesh and load balancers do, and ends those
// that are idle. It does not read what passes: TLS is between the client and the server.
type Mesh struct {
	listener net.Listener
	to       string
	after    time.Duration
	how      Idle
	ended    atomic.Int64

	mu     sync.Mutex
	open   map[net.Conn]bool // nil after Close
	passes sync.WaitGroup
}

// StartMesh passes connections on to an address until Close is called.
func StartMesh(to string, after time.Duration, how Idle) (*Mesh, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("mesh: %w", err)
	}
	m := &Mesh{listener: l, to: to, after: after, how: how, open: map[net.Conn]bool{}}
	m.passes.Go(m.accept)
	return m, nil
}

// Address is where clients connect.
func (m *Mesh) Address() string { return m.listener.Addr().String() }

// Ended counts the connections that were ended because they were idle.
func (m *Mesh) Ended() int { return int(m.ended.Load()) }

// Close ends all connections.
func (m *Mesh) Close() error {
	err := m.listener.Close()
	m.mu.Lock()
	for c := range m.open { // order: each is closed
		err = errors.Join(err, c.Close())
	}
	m.open = nil
	m.mu.Unlock()
	m.passes.Wait()
	return err
}

func (m *Mesh) accept() {
	for {
		client, err := m.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", m.to)
		if err != nil {
			_ = client.Close()
			continue
		}
		m.passes.Go(func() { m.pass(client.(*net.TCPConn), server.(*net.TCPConn)) })
	}
}

// keep notes a connection, and reports whether the mesh is still open.
func (m *Mesh) keep(c net.Conn) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open == nil {
		return false
	}
	m.open[c] = true
	return true
}

// drop closes a connection, unless Close has done so.
func (m *Mesh) drop(c net.Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open[c] {
		delete(m.open, c)
		_ = c.Close()
	}
}

// pass copies bytes both ways until one side ends, or nothing has passed for long enough.
func (m *Mesh) pass(client, server *net.TCPConn) {
	if !m.keep(client) || !m.keep(server) {
		_, _ = client.Close(), server.Close()
		return
	}
	var forgotten, over atomic.Bool // over: it was ended because it was idle
	idle := time.AfterFunc(m.after, func() {
		if over.Swap(true) {
			return
		}
		forgotten.Store(m.how == IdleForgotten)
		m.ended.Add(1)
		if m.how != IdleClosed {
			_ = server.SetLinger(0)
		}
		if m.how == IdleReset {
			_ = client.SetLinger(0)
		}
		m.drop(server)
		if m.how != IdleForgotten {
			m.drop(client)
		}
	})
	defer idle.Stop()
	var ways sync.WaitGroup
	ways.Go(func() {
		copyBytes(server, client, func() { idle.Reset(m.after) })
		if forgotten.Load() {
			_, _ = io.Copy(io.Discard, client) // until the client gives up on it
		}
		m.drop(client)
		m.drop(server)
	})
	ways.Go(func() {
		copyBytes(client, server, func() { idle.Reset(m.after) })
		m.drop(server)
		if !forgotten.Load() {
			m.drop(client)
		}
	})
	ways.Wait()
}

// copyBytes copies until one side ends. passed is called for every piece.
func copyBytes(to, from net.Conn, passed func()) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			passed()
			if _, failed := to.Write(buffer[:n]); failed != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
