// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

// profileMost is the length in seconds that a profile is requested with; it ends when its operation says so.
const profileMost = 24 * 60 * 60

// StartProfile begins a CPU profile of the scheduler. The returned function ends it and writes it below the directory:
// to the path, with the scheduler's name before the name of the file. A scheduler that serves nothing has no profile.
func (s *Scheduler) StartProfile(ctx context.Context, dir, path string) (stop func(context.Context) error, err error) {
	if s.Port == 0 {
		return func(context.Context) error { return nil }, nil
	}
	// The server ends a profile when the client ends its side of the connection, and still answers. That takes a
	// connection that carries no other request, in HTTP/1.1.
	dialer := tls.Dialer{Config: s.tls}
	conn, err := dialer.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", s.Port))
	if err != nil {
		return nil, err
	}
	url := fmt.Sprintf("https://127.0.0.1:%d/debug/pprof/profile?seconds=%d", s.Port, profileMost)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err == nil {
		err = request.Write(conn)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	forget := context.AfterFunc(ctx, func() { _ = conn.Close() }) // a run that fails waits for no answer
	return func(context.Context) error {
		defer forget()
		file := filepath.Join(dir, filepath.Dir(path), fileName(s.Name)+"-"+filepath.Base(path))
		return errors.Join(endProfile(conn.(*tls.Conn), request, file), conn.Close())
	}, nil
}

// endProfile ends the profile of a request and writes it to a file.
func endProfile(conn *tls.Conn, request *http.Request, file string) error {
	if err := conn.CloseWrite(); err != nil {
		return err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10)) // what was said before an error counts
		return fmt.Errorf("%s: %s", answer.Status, text)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, answer.Body)
	return errors.Join(err, f.Close())
}
