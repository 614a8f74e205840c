// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/kumiki-scheduler/kumiki/apm/outside"
)

// profileMost is the length in seconds that a profile is requested with; it ends when its operation says so.
const profileMost = 24 * 60 * 60

// StartProfile begins a CPU profile of the scheduler. The returned function ends it and writes it below the directory:
// to the path, with the scheduler's name before the name of the file. A scheduler that serves nothing has no profile.
func (s *Scheduler) StartProfile(ctx context.Context, dir, path string) (stop func(context.Context) error, err error) {
	if s.Port == 0 {
		return func(context.Context) error { return nil }, nil
	}
	answer, err := s.Start(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%d", profileMost))
	if err != nil {
		return nil, err
	}
	return func(context.Context) error {
		file := filepath.Join(dir, filepath.Dir(path), fileName(s.Name)+"-"+filepath.Base(path))
		return errors.Join(endProfile(answer, file), answer.Close())
	}, nil
}

// endProfile ends the profile of an answer and writes it to a file.
func endProfile(answer outside.Pending, file string) error {
	if err := answer.End(); err != nil {
		return err
	}
	content := bufio.NewReader(answer)
	if _, err := content.Peek(1); err != nil { // what was said before an error counts
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}

// Fetch returns the answer to a request.
func (s *Scheduler) Fetch(ctx context.Context, path string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url(path), nil)
	if err != nil {
		return nil, err
	}
	answer, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	return nil, refused(answer)
}

// Start sends a request whose answer lasts until it is ended. The server ends a profile or a trace when the client ends
// its side of the connection, and still answers. That takes a connection that carries no other request, in HTTP/1.1. If
// ctx ends, the connection is closed: a run that fails waits for no answer.
func (s *Scheduler) Start(ctx context.Context, path string) (outside.Pending, error) {
	dialer := tls.Dialer{Config: s.tls}
	conn, err := dialer.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", s.Port))
	if err != nil {
		return nil, err
	}
	p := &pending{conn: conn.(*tls.Conn)}
	p.request, err = http.NewRequestWithContext(ctx, http.MethodGet, s.url(path), nil)
	if err == nil {
		err = p.request.Write(conn)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	p.forget = context.AfterFunc(ctx, func() { _ = conn.Close() })
	return p, nil
}

func (s *Scheduler) url(path string) string {
	return fmt.Sprintf("https://127.0.0.1:%d%s", s.Port, path)
}

// pending is an answer that lasts until it is ended.
type pending struct {
	conn    *tls.Conn
	request *http.Request
	forget  func() bool
	answer  *http.Response // nil before the first read
}

// Read reads the answer. A refusal is an error.
func (p *pending) Read(b []byte) (int, error) {
	if p.answer == nil {
		answer, err := http.ReadResponse(bufio.NewReader(p.conn), p.request)
		if err != nil {
			return 0, err
		}
		p.answer = answer
		if answer.StatusCode != http.StatusOK {
			return 0, refused(answer)
		}
	}
	return p.answer.Body.Read(b)
}

// End ends the client's side of the connection.
func (p *pending) End() error { return p.conn.CloseWrite() }

// Close closes the connection.
func (p *pending) Close() error {
	p.forget()
	return p.conn.Close()
}

// refused returns the error of an answer that is not OK.
func refused(answer *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	return fmt.Errorf("%s: %s", answer.Status, bytes.TrimSpace(text))
}
