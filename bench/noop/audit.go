// SPDX-License-Identifier: Apache-2.0

package noop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

// auditPolicy makes an API server log the writes of a scheduler, with the objects that it sends. A scheduler is
// identified by its user.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Request
  users: ["system:kube-scheduler"]
  verbs: [create, update, patch, delete]
  resources:
  - {group: "", resources: [pods, pods/binding, pods/status, persistentvolumes, persistentvolumeclaims]}
  - {group: events.k8s.io}
  - {group: resource.k8s.io}
  - {group: scheduling.k8s.io}
- level: None
`

// audited is a write of a scheduler, one line of the API server's log (audit.k8s.io/v1, Event).
type audited struct {
	Stage     string `json:"stage"`
	Verb      string `json:"verb"` // create, update, patch or delete
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"` // empty when a name was generated
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestObject json.RawMessage `json:"requestObject"`
}

// key is the object, namespace/name.
func (a *audited) key() string { return a.ObjectRef.Namespace + "/" + a.ObjectRef.Name }

// what is the kind of a call: "patch pods/status".
func (a *audited) what() string {
	what := a.Verb + " " + a.ObjectRef.Resource
	if a.ObjectRef.Subresource != "" {
		what += "/" + a.ObjectRef.Subresource
	}
	return what
}

// body decodes the object that was sent.
func (a *audited) body(into any) error {
	if err := json.Unmarshal(a.RequestObject, into); err != nil {
		return fmt.Errorf("%s of %s in the log of writes: %w", a.what(), a.key(), err)
	}
	return nil
}

// auditArgs write the policy into a directory and give the flags of a local cluster that logs into a file there.
func auditArgs(dir string) (args []string, log string, err error) {
	policy := filepath.Join(dir, "audit-policy.yaml")
	log = filepath.Join(dir, "audit.log")
	if err := os.Remove(log); err != nil && !os.IsNotExist(err) {
		return nil, "", err
	}
	const unlimited = "1000000" // megabytes; 0 is not no limit for the library that writes the file
	for _, flag := range []string{"policy-file=" + policy, "log-path=" + log, "log-maxsize=" + unlimited} {
		args = append(args, "--apiserver-arg=--audit-"+flag)
	}
	return args, log, os.WriteFile(policy, []byte(auditPolicy), 0o600)
}

// readAudit reads the writes that succeeded, in the order in which they were answered.
func readAudit(path string) ([]audited, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the log of writes: %w", err)
	}
	defer f.Close()
	var out []audited
	for r := bufio.NewReader(f); ; {
		line, err := r.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var a audited
			if err := json.Unmarshal(line, &a); err != nil {
				return nil, fmt.Errorf("line %d of the log of writes: %w", len(out)+1, err)
			}
			if a.Stage == "ResponseComplete" && a.ResponseStatus.Code < http.StatusMultipleChoices {
				out = append(out, a)
			}
		}
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the log of writes: %w", err)
		}
	}
}
