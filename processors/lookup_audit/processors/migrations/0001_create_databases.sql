-- Tables live in audit_store; what auditors read are the views of audit.
CREATE DATABASE IF NOT EXISTS audit_store;

CREATE DATABASE IF NOT EXISTS audit;
