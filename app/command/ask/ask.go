// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/view"
)

// ErrUnknown means that the scheduler does not know the subject of the question.
var ErrUnknown = errors.New("not known to the scheduler")

// Pod returns the report on a pod.
func (c *Client) Pod(ctx context.Context, namespace, name string) (r record.PodReport, err error) {
	return r, c.get(ctx, "why/pod/"+url.PathEscape(namespace)+"/"+url.PathEscape(name), &r)
}

// Node returns the report on a node.
func (c *Client) Node(ctx context.Context, name string) (r record.NodeReport, err error) {
	return r, c.get(ctx, "why/node/"+url.PathEscape(name), &r)
}

// Gang returns the report on a gang.
func (c *Client) Gang(ctx context.Context, namespace, name string) (r record.GangReport, err error) {
	return r, c.get(ctx, "why/gang/"+url.PathEscape(namespace)+"/"+url.PathEscape(name), &r)
}

// WhatIf returns what would happen to a pod, or with gang set a gang, under conditions.
func (c *Client) WhatIf(ctx context.Context, gang bool, namespace, name string,
	conditions []string) (r record.WhatIf, err error) {
	kind := "pod"
	if gang {
		kind = "gang"
	}
	path := "whatif/" + kind + "/" + url.PathEscape(namespace) + "/" + url.PathEscape(name)
	return r, c.get(ctx, path+"?"+url.Values{"if": conditions}.Encode(), &r)
}

// Queue returns the report on everything that waits, with the entries of a namespace, or of all if it is empty.
func (c *Client) Queue(ctx context.Context, namespace string) (r record.QueueReport, err error) {
	path := "queue"
	if namespace != "" {
		path += "?" + url.Values{"namespace": {namespace}}.Encode()
	}
	return r, c.get(ctx, path, &r)
}

// Gangs returns the gangs of a namespace, or all if it is empty.
func (c *Client) Gangs(ctx context.Context, namespace string) (r record.GangList, err error) {
	path := "gangs"
	if namespace != "" {
		path += "?" + url.Values{"namespace": {namespace}}.Encode()
	}
	return r, c.get(ctx, path, &r)
}

// Timing returns where the time of pods went, of one pod or, with empty names, of as many of the newest as limit.
func (c *Client) Timing(ctx context.Context, namespace, name string, limit int) (r record.Timing, err error) {
	path := "timing"
	if name != "" {
		path += "/pod/" + url.PathEscape(namespace) + "/" + url.PathEscape(name)
	}
	return r, c.get(ctx, path+"?limit="+strconv.Itoa(limit), &r)
}

func (c *Client) get(ctx context.Context, path string, into any) error {
	body, err := c.open(ctx, path)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(into); err != nil {
		return fmt.Errorf("reading the scheduler's answer to %s: %w", path, err)
	}
	return nil
}

// open sends a request and returns the body of a successful response.
func (c *Client) open(ctx context.Context, path string) (io.ReadCloser, error) {
	resp, err := c.send(ctx, view.Prefix+path)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	return nil, refusal(resp, resp.Request.URL.Path)
}

// send sends a GET of a path of the scheduler. The caller closes the body of the response.
func (c *Client) send(ctx context.Context, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return nil, fmt.Errorf("asking the scheduler: %w", err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("scheduler %s does not answer: %w", c.Holder, err)
	}
	return resp, nil
}

// StatusError is an answer of the scheduler other than OK to Fetch.
type StatusError struct {
	Code          int
	Path, Message string
}

// Error states what the answer means for the user.
func (e *StatusError) Error() string {
	switch e.Code {
	case http.StatusUnauthorized:
		return "the scheduler does not accept your credentials (401)"
	case http.StatusForbidden:
		return fmt.Sprintf("the scheduler denies it (403): you need get on the nonResourceURL %s", e.Path)
	case http.StatusNotFound:
		return fmt.Sprintf("the scheduler does not serve %s (404): is its configuration enableProfiling: false?",
			e.Path)
	}
	if e.busy() {
		return "another recording of the scheduler is under way, and a process has one at a time: try again when it " +
			"has ended (" + strings.TrimSpace(e.Message) + ")"
	}
	return fmt.Sprintf("the scheduler answered %d to %s: %s", e.Code, e.Path, strings.TrimSpace(e.Message))
}

// busy reports whether the scheduler refused a profile or a trace because it is recording one (net/http/pprof).
func (e *StatusError) busy() bool {
	return e.Code == http.StatusInternalServerError && strings.Contains(e.Message, "Could not enable") &&
		strings.Contains(e.Message, "already")
}

// Fetch returns the answer to a GET of a path that kube-scheduler serves too, such as /metrics, with a query. The error
// is a *StatusError if the scheduler answers something else than OK. The caller closes the answer.
func (c *Client) Fetch(ctx context.Context, path string) (io.ReadCloser, error) {
	resp, err := c.send(ctx, path)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<12))
	return nil, &StatusError{Code: resp.StatusCode, Path: resp.Request.URL.Path, Message: string(text)}
}

// refusal converts a response that is not OK to an error for users.
func refusal(resp *http.Response, path string) error {
	var status metav1.Status
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	message := string(text)
	if json.Unmarshal(text, &status) == nil && status.Message != "" {
		message = status.Message
	}
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		return errors.New("the scheduler does not accept your credentials: your kubeconfig has neither a client " +
			"certificate nor a token that is valid in this cluster, or it has expired")
	case resp.StatusCode == http.StatusForbidden:
		return fmt.Errorf("the scheduler does not answer you: %s. To ask about one namespace you need get and list on "+
			"its pods, as the ClusterRole view gives; to ask about all, the ClusterRole kumiki-viewer "+
			"(deploy/viewer.yaml: get on the nonResourceURL /kumiki/*)", strings.TrimSuffix(message, "."))
	case resp.StatusCode == http.StatusNotFound && status.Kind != "Status":
		return fmt.Errorf("the scheduler serves no %s: it is older than this command line, or started without the page",
			path)
	case resp.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%w: %s", ErrUnknown, message)
	case status.Message != "" && (resp.StatusCode == http.StatusUnprocessableEntity ||
		resp.StatusCode == http.StatusBadRequest):
		return errors.New(message)
	case resp.StatusCode == http.StatusTooManyRequests:
		return fmt.Errorf("the scheduler is busy with other questions: %s; try again in some seconds", message)
	}
	return fmt.Errorf("the scheduler answered %s: %s", resp.Status, message)
}

// Moves streams queue moves of a namespace, or of all if it is empty, to f: those after since of the given epoch first;
// with an empty epoch only new ones. It returns when ctx ends, when f fails, or when the stream breaks, with the
// position from which to continue.
func (c *Client) Moves(ctx context.Context, namespace, epoch string, since uint64,
	f func(view.MoveLine) error) (string, uint64, error) {
	query := url.Values{}
	if namespace != "" {
		query.Set("namespace", namespace)
	}
	if epoch != "" {
		query.Set("epoch", epoch)
		query.Set("since", strconv.FormatUint(since, 10))
	}
	body, err := c.open(ctx, "queue/watch?"+query.Encode())
	if err != nil {
		return epoch, since, err
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue // the stream is alive
		}
		var line view.MoveLine
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return epoch, since, fmt.Errorf("reading the stream of moves: %w", err)
		}
		if line.Epoch != "" {
			if epoch == "" {
				since = line.Seq
			}
			epoch = line.Epoch
		} else {
			since = line.Seq
		}
		if err := f(line); err != nil {
			return epoch, since, err
		}
	}
	if err := lines.Err(); err != nil && ctx.Err() == nil {
		return epoch, since, fmt.Errorf("reading the stream of moves: %w", err)
	}
	return epoch, since, ctx.Err()
}
