// SPDX-License-Identifier: Apache-2.0

package profilecheck

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// slowSocket stands in front of a socket and delays the answers that come through it.
type slowSocket struct {
	listener net.Listener
	behind   string
	delay    atomic.Int64
	mu       sync.Mutex
	open     map[net.Conn]bool // connections -> true; guarded by mu
	closed   bool              // guarded by mu
	running  sync.WaitGroup
}

// interpose takes the place of a Unix socket. Connections that exist stay as they are.
func interpose(socket string) (*slowSocket, error) {
	behind := filepath.Join(filepath.Dir(socket), "behind.sock")
	if err := os.Rename(socket, behind); err != nil {
		return nil, fmt.Errorf("taking the place of a socket: %w", err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("taking the place of a socket: %w", errors.Join(err, os.Rename(behind, socket)))
	}
	s := &slowSocket{listener: l, behind: behind, open: map[net.Conn]bool{}}
	s.running.Go(s.accept)
	return s, nil
}

// set sets by how much answers are delayed.
func (s *slowSocket) set(d time.Duration) { s.delay.Store(int64(d)) }

func (s *slowSocket) accept() {
	for {
		client, err := s.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", s.behind)
		if err != nil {
			client.Close()
			continue
		}
		if !s.keep(client, server) {
			return
		}
		s.running.Go(func() {
			_, _ = io.Copy(server, client)
			server.Close()
		})
		s.running.Go(func() {
			s.late(client, server)
			client.Close()
		})
	}
}

// keep remembers connections, and reports whether they may be used.
func (s *slowSocket) keep(conns ...net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range conns {
		s.open[c] = true
		if s.closed {
			c.Close()
		}
	}
	return !s.closed
}

// chunk is a part of an answer, and when it is due.
type chunk struct {
	bytes []byte
	due   time.Time
}

// late copies answers, each part of which is late by the delay: the throughput stays as it is.
func (s *slowSocket) late(to io.Writer, from io.Reader) {
	chunks := make(chan chunk, 1024)
	s.running.Go(func() {
		defer close(chunks)
		for {
			buffer := make([]byte, 32<<10)
			n, err := from.Read(buffer)
			if n > 0 {
				chunks <- chunk{buffer[:n], time.Now().Add(time.Duration(s.delay.Load()))}
			}
			if err != nil {
				return
			}
		}
	})
	broken := false
	for c := range chunks {
		if broken {
			continue
		}
		time.Sleep(time.Until(c.due))
		_, err := to.Write(c.bytes)
		broken = err != nil
	}
}

// Close ends all connections and gives the place back.
func (s *slowSocket) Close() error {
	s.mu.Lock()
	s.closed = true
	for c := range s.open { // order: all are closed
		c.Close()
	}
	s.mu.Unlock()
	err := s.listener.Close()
	s.running.Wait()
	return err
}
