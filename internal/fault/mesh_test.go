// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"
)

// echo answers every byte with itself, and gives out how each of its connections ended.
func echo(t *testing.T) (address string, ends <-chan error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	ended := make(chan error, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, err := io.Copy(c, c)
				ended <- err
			}()
		}
	}()
	return l.Addr().String(), ended
}

// TestHowAMeshEndsIdleConnections: bytes pass both ways; a connection that is idle ends on each side in its way. Catches
// a mesh that ends none, or that shows the client an end which it should not see.
func TestHowAMeshEndsIdleConnections(t *testing.T) {
	for how, want := range map[Idle]struct{ client, server func(error) bool }{
		IdleClosed: {func(err error) bool { return errors.Is(err, io.EOF) }, func(err error) bool { return err == nil }},
		IdleReset: {func(err error) bool { return errors.Is(err, syscall.ECONNRESET) },
			func(err error) bool { return errors.Is(err, syscall.ECONNRESET) }},
		IdleForgotten: {func(err error) bool { var late net.Error; return errors.As(err, &late) && late.Timeout() },
			func(err error) bool { return errors.Is(err, syscall.ECONNRESET) }},
	} {
		t.Run(how.String(), func(t *testing.T) {
			address, ends := echo(t)
			m, err := StartMesh(address, 100*time.Millisecond, how)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			c, err := net.Dial("tcp", m.Address())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			buffer := make([]byte, 1)
			if _, err := c.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(c, buffer); err != nil || buffer[0] != 'x' {
				t.Fatalf("%q, %v", buffer, err)
			}
			if err := <-ends; !want.server(err) {
				t.Errorf("the server saw %v", err)
			}
			if how == IdleForgotten {
				if _, err := c.Write([]byte("y")); err != nil {
					t.Errorf("sending after the end: %v", err)
				}
				c.SetReadDeadline(time.Now().Add(time.Second))
			}
			if _, err := c.Read(buffer); !want.client(err) {
				t.Errorf("the client saw %v", err)
			}
			if m.Ended() != 1 {
				t.Errorf("%d connections were ended", m.Ended())
			}
		})
	}
}
