package robustness

import (
	"fmt"
	"slices"

	"go.etcd.io/etcd/tests/v3/robustness/model"
)

// persistedRequests turns the audit into what the validators take: the requests
// that changed something, in order, without their conditions. It fails if a
// revision is missing, out of order, or was given twice.
func persistedRequests(rows []auditRow) ([]model.EtcdRequest, error) {
	p := persisted{last: 1, leases: map[int64]bool{}, keyLeases: map[string]int64{}} // an empty store is at 1
	for len(rows) > 0 {
		if rows[0].kind != "batch" {
			return nil, fmt.Errorf("%s %d stands before a transaction", rows[0].kind, rows[0].number)
		}
		end := 1
		for end < len(rows) && rows[end].kind != "batch" {
			end++
		}
		if err := p.transaction(rows[1:end]); err != nil {
			return nil, err
		}
		if p.last > rows[0].number {
			return nil, fmt.Errorf("revision %d is above the newest, %d", p.last, rows[0].number)
		}
		rows = rows[end:]
	}
	return p.requests, nil
}

type persisted struct {
	requests  []model.EtcdRequest
	last      int64 // revision
	leases    map[int64]bool
	keyLeases map[string]int64
}

// transaction adds the requests of one. Its floor and leases stand apart from
// its revisions, so their places among them are made up: a compaction at a
// revision comes right after it or, as the floor is stored first, before the
// others; a lease is granted before its first key; the revision that revoked a
// lease is the one that deletes all its keys and nothing else.
func (p *persisted) transaction(rows []auditRow) error {
	var revisions [][]auditRow
	var revoked []int64
	for _, row := range rows {
		switch row.kind {
		case "floor":
			p.requests = append(p.requests, model.EtcdRequest{Type: model.Compact, Compact: &model.CompactRequest{Revision: row.number}})
		case "grant":
			p.grant(row.number)
		case "revoke":
			revoked = append(revoked, row.number)
		case "version":
			if n := len(revisions); n > 0 && revisions[n-1][0].number == row.number {
				revisions[n-1] = append(revisions[n-1], row)
				continue
			}
			if row.number != p.last+1 {
				return fmt.Errorf("revision %d of %q follows %d", row.number, row.key, p.last)
			}
			p.last = row.number
			revisions = append(revisions, []auditRow{row})
		}
	}
	for _, revision := range revisions {
		i := slices.IndexFunc(revoked, func(lease int64) bool { return p.deletesAllOf(lease, revision) })
		if i >= 0 {
			p.revoke(revoked[i])
			revoked = slices.Delete(revoked, i, i+1)
			continue
		}
		if err := p.txn(revision); err != nil {
			return err
		}
	}
	for _, lease := range revoked { // leases without keys
		p.revoke(lease)
	}
	return nil
}

func (p *persisted) grant(lease int64) {
	if p.leases[lease] {
		return // stored once more with a new deadline
	}
	p.leases[lease] = true
	p.requests = append(p.requests, model.EtcdRequest{Type: model.LeaseGrant, LeaseGrant: &model.LeaseGrantRequest{LeaseID: lease}})
}

func (p *persisted) revoke(lease int64) {
	for key, of := range p.keyLeases {
		if of == lease {
			delete(p.keyLeases, key)
		}
	}
	p.requests = append(p.requests, model.EtcdRequest{Type: model.LeaseRevoke, LeaseRevoke: &model.LeaseRevokeRequest{LeaseID: lease}})
}

func (p *persisted) deletesAllOf(lease int64, revision []auditRow) bool {
	for _, row := range revision {
		if !row.deleted || p.keyLeases[row.key] != lease {
			return false
		}
	}
	keys := 0
	for _, of := range p.keyLeases {
		if of == lease {
			keys++
		}
	}
	return keys == len(revision)
}

func (p *persisted) txn(revision []auditRow) error {
	txn := &model.TxnRequest{}
	seen := map[string]bool{}
	for _, row := range revision {
		if seen[row.key] {
			return fmt.Errorf("revision %d has %q twice", row.number, row.key)
		}
		seen[row.key] = true
		if row.deleted {
			delete(p.keyLeases, row.key)
			txn.OperationsOnSuccess = append(txn.OperationsOnSuccess, model.EtcdOperation{
				Type: model.DeleteOperation, Delete: model.DeleteOptions{Key: row.key},
			})
			continue
		}
		if p.keyLeases[row.key] = row.lease; row.lease != 0 {
			p.grant(row.lease)
		}
		txn.OperationsOnSuccess = append(txn.OperationsOnSuccess, model.EtcdOperation{
			Type: model.PutOperation,
			Put:  model.PutOptions{Key: row.key, Value: model.ToValueOrHash(row.value), LeaseID: row.lease},
		})
	}
	p.requests = append(p.requests, model.EtcdRequest{Type: model.Txn, Txn: txn})
	return nil
}
