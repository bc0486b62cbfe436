package server

import pb "go.etcd.io/etcd/api/v3/etcdserverpb"

// raftTerm is the term in every header. There is no raft here and so no
// election: the term of the first leader is the last one.
const raftTerm = 2

// headers fills in what every answer says about who gave it.
type headers struct{ clusterID, memberID uint64 }

func (h headers) fill(header *pb.ResponseHeader) {
	header.ClusterId = h.clusterID
	header.MemberId = h.memberID
	header.RaftTerm = raftTerm
}

func (h headers) at(revision int64) *pb.ResponseHeader {
	header := &pb.ResponseHeader{Revision: revision}
	h.fill(header)
	return header
}
