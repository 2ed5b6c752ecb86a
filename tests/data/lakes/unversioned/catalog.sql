BEGIN TRANSACTION;
CREATE TABLE ducklake_column (
	column_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	table_id BIGINT, 
	column_order BIGINT, 
	column_name VARCHAR, 
	column_type VARCHAR, 
	initial_default VARCHAR, 
	default_value VARCHAR, 
	nulls_allowed BIGINT, 
	parent_column BIGINT, 
	default_value_type VARCHAR, 
	default_value_dialect VARCHAR
);
INSERT INTO "ducklake_column" VALUES(1,1,NULL,1,1,'k','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(2,1,NULL,1,2,'g','varchar',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(3,1,NULL,1,3,'v','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(1,1,NULL,3,1,'v','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(2,1,NULL,3,2,'g','varchar',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(1,3,NULL,5,1,'g','varchar',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(2,3,NULL,5,2,'s','int64',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(3,3,NULL,5,3,'n','int64',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(4,3,NULL,5,4,'c','int64',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(5,3,NULL,5,5,'lo','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(6,3,NULL,5,6,'hi','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(1,6,NULL,7,1,'k','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(2,6,NULL,7,2,'g','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(3,6,NULL,7,3,'at','int64',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(4,6,NULL,7,4,'v','varchar',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(1,6,NULL,9,1,'g','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(2,6,NULL,9,2,'k','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(3,6,NULL,9,3,'v','varchar',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(4,6,NULL,9,4,'at','int64',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(1,9,NULL,11,1,'j','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(2,9,NULL,11,2,'k','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(3,9,NULL,11,3,'s','int64',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(4,9,NULL,11,4,'lo','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(5,9,NULL,11,5,'hi','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(6,9,NULL,11,6,'r','varchar',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(7,9,NULL,11,7,'n','varchar',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(1,9,NULL,13,1,'j','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(2,9,NULL,13,2,'s','decimal(38,0)',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(3,9,NULL,13,3,'hi','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(1,12,14,15,1,'id','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(2,12,NULL,15,2,'s','struct',NULL,'NULL',1,NULL,'','duckdb');
INSERT INTO "ducklake_column" VALUES(3,12,NULL,15,3,'a','int32',NULL,'NULL',1,2,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(4,12,NULL,15,4,'l','list',NULL,'NULL',1,2,'','duckdb');
INSERT INTO "ducklake_column" VALUES(5,12,NULL,15,5,'element','decimal(9,2)',NULL,'NULL',1,4,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(6,12,NULL,15,6,'m','map',NULL,'NULL',1,NULL,'','duckdb');
INSERT INTO "ducklake_column" VALUES(7,12,NULL,15,7,'key','varchar',NULL,'NULL',1,6,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(8,12,NULL,15,8,'value','date',NULL,'NULL',1,6,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(1,14,NULL,15,1,'id','int64',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(1,18,NULL,17,1,'id','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(2,18,NULL,17,2,'v','varchar',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(3,18,NULL,17,3,'w','varchar',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(4,18,NULL,17,4,'old','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(5,18,NULL,17,5,'s','struct',NULL,'NULL',1,NULL,'','duckdb');
INSERT INTO "ducklake_column" VALUES(6,18,NULL,17,6,'a','int32',NULL,'NULL',1,5,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(7,18,NULL,17,7,'t','varchar',NULL,'NULL',1,5,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(8,20,20,17,2,'v','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(9,20,20,17,3,'w','decimal(9,2)',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(1,21,NULL,18,1,'id','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(2,21,NULL,18,2,'v','varchar',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(3,23,23,18,2,'v','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(1,24,NULL,19,1,'id','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(2,24,NULL,19,2,'v','varchar',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(3,26,26,19,2,'v','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(1,27,NULL,20,1,'id','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(2,27,NULL,20,2,'at','date',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(3,27,NULL,20,3,'g','varchar',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(1,30,NULL,23,1,'id','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(2,30,NULL,23,2,'v','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(1,32,NULL,24,1,'k','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(2,32,NULL,24,2,'v','varchar',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(3,34,34,24,2,'v','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(1,35,NULL,25,1,'id','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(2,35,57,25,2,'v','varchar',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(3,37,37,25,2,'v','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(1,38,NULL,26,1,'id','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(2,38,NULL,26,2,'v','varchar',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(3,40,40,26,2,'v','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(1,41,NULL,27,1,'id','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(2,41,NULL,27,2,'v','varchar',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(3,43,43,27,2,'v','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(1,44,NULL,28,1,'k','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(2,44,NULL,28,2,'g','varchar',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(3,44,NULL,28,3,'v','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(1,46,NULL,29,1,'k','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(2,46,NULL,29,2,'g','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(3,46,NULL,29,3,'v','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(1,48,NULL,31,1,'k','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(2,48,NULL,31,2,'g','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(3,48,NULL,31,3,'v','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(1,50,NULL,33,1,'k','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(2,50,NULL,33,2,'j','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(3,50,NULL,33,3,'v','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(1,52,NULL,35,1,'a','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(2,52,NULL,35,2,'b','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(3,52,NULL,35,3,'c','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(4,52,NULL,35,4,'v','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(1,52,NULL,37,1,'a','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(2,52,NULL,37,2,'b','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(3,52,NULL,37,3,'v','int64',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(1,52,NULL,39,1,'b','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(2,52,NULL,39,2,'v','int64',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(1,55,NULL,41,1,'v','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(2,55,NULL,41,2,'k','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(3,57,NULL,25,2,'v','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(1,58,NULL,43,1,'id','int32',NULL,'NULL',1,NULL,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(2,58,NULL,43,2,'s','struct',NULL,'NULL',1,NULL,'','duckdb');
INSERT INTO "ducklake_column" VALUES(3,58,NULL,43,3,'a','int32',NULL,'NULL',1,2,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(4,58,NULL,43,4,'l','list',NULL,'NULL',1,NULL,'','duckdb');
INSERT INTO "ducklake_column" VALUES(5,58,NULL,43,5,'element','decimal(9,2)',NULL,'NULL',1,4,'literal','duckdb');
INSERT INTO "ducklake_column" VALUES(6,58,NULL,43,6,'u','varchar',NULL,'NULL',1,NULL,'literal','duckdb');
CREATE TABLE ducklake_column_mapping (
	mapping_id BIGINT, 
	table_id BIGINT, 
	type VARCHAR
);
CREATE TABLE ducklake_column_tag (
	table_id BIGINT, 
	column_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"key" VARCHAR, 
	value VARCHAR
);
CREATE TABLE ducklake_data_file (
	data_file_id BIGINT, 
	table_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	file_order BIGINT, 
	path VARCHAR, 
	path_is_relative BIGINT, 
	file_format VARCHAR, 
	record_count BIGINT, 
	file_size_bytes BIGINT, 
	footer_size BIGINT, 
	row_id_start BIGINT, 
	partition_id BIGINT, 
	encryption_key VARCHAR, 
	mapping_id BIGINT, 
	partial_max BIGINT, 
	PRIMARY KEY (data_file_id)
);
INSERT INTO "ducklake_data_file" VALUES(0,1,2,NULL,NULL,'01a203fb-f92f-7d77-b4bf-c6029953d0b8/part-00000-9fa50fd7-2653-4cf5-bdac-dd3a8487564e-c000.snappy.parquet',1,'parquet',3,917,674,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(1,3,2,NULL,NULL,'01a203fc-1fb6-724f-ba6b-c1c9a2fad83f/part-00000-d9f61a0f-05bb-4bad-bb33-2767364da2bf-c000.snappy.parquet',1,'parquet',3,710,526,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(2,5,3,NULL,NULL,'01a203fc-2b80-7232-a764-46f667ffccc2/part-00000-88c984f2-d090-47ee-af3c-ca608479bfd7-c000.snappy.parquet',1,'parquet',2,1648,1156,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(4,1,5,NULL,NULL,'01a203fc-3b64-793e-8b89-c6029953d0b8/part-00000-98a7a02d-49eb-4493-9da3-69465459121e-c000.snappy.parquet',1,'parquet',2,876,664,3,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(5,3,5,NULL,NULL,'01a203fc-3e5d-713b-b812-c1c9a2fad83f/part-00000-a09c6841-bc38-4823-a78d-33fd141bdae7-c000.snappy.parquet',1,'parquet',2,666,515,3,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(6,5,5,NULL,NULL,'01a203fc-4ca9-7367-ab6e-46f667ffccc2/part-00000-119d1755-4bcd-4178-94af-4ded5e88643d-c000.snappy.parquet',1,'parquet',1,1939,1400,2,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(7,5,5,62,NULL,'01a203fc-4ede-71e4-a227-46f667ffccc2/part-00000-95e7ffdf-af94-4576-b6e0-481bf7c04336-c000.snappy.parquet',1,'parquet',1,1484,1074,3,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(8,7,7,NULL,NULL,'01a203fc-6961-76d6-b50f-581526aedaf7/part-00000-2f873561-2a13-4f7c-8b4d-992dfce8db53-c000.snappy.parquet',1,'parquet',2,1168,840,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(9,9,7,NULL,NULL,'01a203fc-6ccb-77a6-b449-0c3596b1905b/part-00000-337c2725-5974-4633-9003-c2f79756214e-c000.snappy.parquet',1,'parquet',2,1180,840,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(12,7,8,NULL,NULL,'01a203fc-7caa-798e-965c-581526aedaf7/part-00000-010cbd77-7eb7-4835-a114-2a9f32011e77-c000.snappy.parquet',1,'parquet',1,1436,1072,2,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(13,7,8,NULL,NULL,'01a203fc-7daf-7710-a3c8-581526aedaf7/part-00000-e656ea1a-a963-446e-8438-da8417b8a00f-c000.snappy.parquet',1,'parquet',1,1116,834,3,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(14,9,8,NULL,NULL,'01a203fc-8cd4-73c5-9338-0c3596b1905b/part-00000-2db0a185-e32f-4703-a800-bff4490852b5-c000.snappy.parquet',1,'parquet',1,1436,1072,2,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(15,9,8,NULL,NULL,'01a203fc-8e39-76cc-a339-0c3596b1905b/part-00000-9288baf9-a19c-40e9-9a80-2f1841a322d2-c000.snappy.parquet',1,'parquet',1,1116,834,3,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(16,11,10,NULL,NULL,'01a203fc-94ea-752c-a298-375dbbb0d377/part-00000-2296079b-2016-4c02-ad27-f569f3345f7c-c000.snappy.parquet',1,'parquet',2,1819,1277,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(17,13,10,11,NULL,'01a203fc-99c1-76ae-8979-6b5df8597d18/part-00000-b1510907-8dcf-41f7-95d8-574277c92523-c000.snappy.parquet',1,'parquet',1,1001,748,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(19,11,11,NULL,NULL,'01a203fc-a72c-7615-b7e0-375dbbb0d377/part-00000-34381b9a-1955-49d8-885f-b47e2da72ea7-c000.snappy.parquet',1,'parquet',1,2067,1505,2,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(20,11,11,NULL,NULL,'01a203fc-a994-74d0-b7b9-375dbbb0d377/part-00000-4ddd7847-567c-48f1-9a9c-b9b1cd1d1f8b-c000.snappy.parquet',1,'parquet',1,1767,1279,3,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(21,13,11,NULL,NULL,'01a203fc-b5bd-7ea9-a31b-6b5df8597d18/part-00000-6e903166-ae58-47ac-91f1-c6399eacee9a-c000.snappy.parquet',1,'parquet',1,1314,986,1,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(22,13,11,NULL,NULL,'01a203fc-b6e8-7734-b52b-6b5df8597d18/part-00000-5405b53d-b5f7-4309-b2b1-401bab30adfb-c000.snappy.parquet',1,'parquet',1,995,748,2,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(23,15,13,15,NULL,'01a203fc-be2a-72aa-b870-16955d31e0a5/part-00000-adcbd8db-6cc2-4b2a-92ff-867b335b4263-c000.snappy.parquet',1,'parquet',1,1664,1281,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(24,15,15,NULL,NULL,'01a203fc-c119-7a2f-a6b4-16955d31e0a5/part-00000-90f70548-00a9-4332-bf39-64dc9adaa63c-c000.snappy.parquet',1,'parquet',1,2050,1546,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(25,17,19,NULL,NULL,'01a203fc-c525-71b4-8b90-3f0384f847e8/part-00000-187f9bd7-9a09-4a1f-95b2-2fc9ddee2492-c000.snappy.parquet',1,'parquet',2,1619,1194,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(26,18,22,NULL,NULL,'01a203fc-c765-7f5a-87b9-21ea80c65cf1/part-00000-8937236d-7aa4-4dba-984f-b89c60c8aadf-c000.snappy.parquet',1,'parquet',2,664,519,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(27,19,25,54,NULL,'01a203fc-c8ee-7f23-b493-d023a057269c/part-00000-efd7024c-23f3-4669-8830-5e3e5396721d-c000.snappy.parquet',1,'parquet',2,667,520,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(28,20,28,NULL,NULL,'01a203fc-ca22-7857-9fbf-22455482256b/part-00000-2360e0a4-3d06-45c0-ab55-c104fd2a6030-c000.snappy.parquet',1,'parquet',2,883,673,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(29,23,31,NULL,NULL,'01a203fc-cb7e-7c01-b7b0-b92613363c6c/part-00000-5a48b36c-f468-44e3-9435-7d6f9a52bdcd-c000.snappy.parquet',1,'parquet',1,662,526,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(30,24,33,NULL,NULL,'01a203fc-ccfc-78c1-b1bb-81c15cd9ffea/part-00000-4105513b-2e83-4c0c-ad25-5085c1f34c53-c000.snappy.parquet',1,'parquet',2,664,517,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(31,25,36,57,NULL,'01a203fc-ce47-73ce-b9ea-8c942f58b60b/part-00000-380b1eab-c8a2-47bc-b885-913e95bbe693-c000.snappy.parquet',1,'parquet',1,663,526,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(32,26,39,NULL,NULL,'01a203fc-cfa6-773b-a9a7-91bfc5efa869/part-00000-6fa86a85-efb1-4e40-9bae-a13add2077ea-c000.snappy.parquet',1,'parquet',1,655,521,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(33,27,42,NULL,NULL,'01a203fc-d161-7a5e-bf34-a7ed74db9dac/part-00000-f8c68488-49e4-4ecc-a923-8707a4c20b55-c000.snappy.parquet',1,'parquet',1,663,526,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(34,28,45,NULL,NULL,'01a203fc-d3f3-70ef-aafc-ac3bbffc7c0d/part-00000-054e8f0e-6926-42de-83d8-0eaf1250fb82-c000.snappy.parquet',1,'parquet',3,917,674,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(35,29,47,NULL,NULL,'01a203fc-d62a-7d95-92e2-0187241b5b52/part-00000-62640ac6-b596-4434-b0fe-bead1c03cfaf-c000.snappy.parquet',1,'parquet',2,914,684,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(36,31,49,NULL,NULL,'01a203fc-d8b7-7ea1-8d0a-3f173f146b74/part-00000-60b43442-953d-4be3-86e6-56ec50115484-c000.snappy.parquet',1,'parquet',2,914,684,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(37,33,51,NULL,NULL,'01a203fc-dbd3-7a23-87bf-bcf9a58279e1/part-00000-7508824b-f012-4b42-a807-88740f8b1b54-c000.snappy.parquet',1,'parquet',3,964,694,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(38,35,53,NULL,NULL,'01a203fc-e143-78b8-8a75-e50d9be50476/part-00000-6d5b6106-ecd1-4e47-a502-56385a3e041e-c000.snappy.parquet',1,'parquet',2,1136,833,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(39,37,53,NULL,NULL,'01a203fc-e4ed-748b-bb7d-715dcaab736e/part-00000-8c6335b8-391c-4f0c-8871-4cb30ac5bb62-c000.snappy.parquet',1,'parquet',2,963,698,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(40,39,53,NULL,NULL,'01a203fc-e948-7b96-8f6f-6a0f34d3d03b/part-00000-1cb6c6e6-c082-482f-bf55-ac01e52c1fdb-c000.snappy.parquet',1,'parquet',1,699,539,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(41,19,54,NULL,NULL,'01a203fc-ed42-7b31-abf5-d023a057269c/part-00000-3dc62aa4-02e5-484f-8f42-c13c89048048-c000.snappy.parquet',1,'parquet',2,1234,913,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(42,41,55,NULL,NULL,'01a203fc-ef62-7c83-9925-5a371af5a644/part-00000-3469b7a8-6926-49e8-b4f3-c772549ba025-c000.snappy.parquet',1,'parquet',3,690,526,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(43,25,57,NULL,NULL,'01a203fc-f214-7993-af00-8c942f58b60b/part-00000-ea6ec2ca-0741-429e-ad3a-4965447cf258-c000.snappy.parquet',1,'parquet',1,1220,921,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(45,43,59,NULL,NULL,'ducklake-01a203fc-f78f-77d3-81c6-364d2fa12497.parquet',1,'parquet',1,554,419,0,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(46,43,60,NULL,NULL,'01a203fc-f88b-72f1-832c-a44c7fb49cbd/part-00000-dce78093-e4d2-409c-ba2d-6825d055db38-c000.snappy.parquet',1,'parquet',1,1279,1003,1,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(47,7,61,NULL,NULL,'01a203fd-05c5-7e46-bcdc-581526aedaf7/part-00000-62e32d26-0e74-43d3-ba77-0efb19b8e2c1-c000.snappy.parquet',1,'parquet',1,1117,834,4,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(48,9,61,NULL,NULL,'01a203fd-0e66-7dca-9112-0c3596b1905b/part-00000-cf38107d-6d33-4168-ba75-3bb9254c1c22-c000.snappy.parquet',1,'parquet',1,1117,834,4,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(49,1,62,NULL,NULL,'01a203fd-113e-7316-81b2-c6029953d0b8/part-00000-1ba16b6a-3c2b-4b8d-9ce3-2637b332da0b-c000.snappy.parquet',1,'parquet',1,865,669,5,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(50,3,62,NULL,NULL,'01a203fd-1423-74d0-9bca-c1c9a2fad83f/part-00000-401c8306-6416-48bd-b83d-e40f9ca5af50-c000.snappy.parquet',1,'parquet',1,667,521,5,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_data_file" VALUES(51,5,62,NULL,NULL,'01a203fd-232b-76ae-9ee2-46f667ffccc2/part-00000-4141b970-a60b-48d2-9967-e6a4346921c1-c000.snappy.parquet',1,'parquet',1,1939,1400,4,NULL,NULL,NULL,NULL);
CREATE TABLE ducklake_delete_file (
	delete_file_id BIGINT, 
	table_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	data_file_id BIGINT, 
	path VARCHAR, 
	path_is_relative BIGINT, 
	format VARCHAR, 
	delete_count BIGINT, 
	file_size_bytes BIGINT, 
	footer_size BIGINT, 
	encryption_key VARCHAR, 
	partial_max BIGINT, 
	PRIMARY KEY (delete_file_id)
);
INSERT INTO "ducklake_delete_file" VALUES(3,5,5,NULL,2,'01a203fc-52ab-76aa-b15e-46f667ffccc2/file=2/part-00000-a5d28515-c91f-490d-9e72-f24fc7ec72d5.c000.snappy.parquet',1,'parquet',1,1774,1327,NULL,NULL);
INSERT INTO "ducklake_delete_file" VALUES(10,7,8,NULL,8,'01a203fc-7fe1-770e-9298-581526aedaf7/file=8/part-00000-cfa32ce3-736c-4408-a437-39089065c3df.c000.snappy.parquet',1,'parquet',1,1618,1195,NULL,NULL);
INSERT INTO "ducklake_delete_file" VALUES(11,9,8,NULL,9,'01a203fc-90cb-7885-8515-0c3596b1905b/file=9/part-00000-3124c08f-1525-4ea6-af89-41110e5c362b.c000.snappy.parquet',1,'parquet',1,1774,1327,NULL,NULL);
INSERT INTO "ducklake_delete_file" VALUES(18,11,11,NULL,16,'01a203fc-aae2-7af3-8386-375dbbb0d377/file=16/part-00000-62f8059b-179c-4aed-9496-5b78c1306dc6.c000.snappy.parquet',1,'parquet',1,1617,1195,NULL,NULL);
CREATE TABLE ducklake_file_column_stats (
	data_file_id BIGINT, 
	table_id BIGINT, 
	column_id BIGINT, 
	column_size_bytes BIGINT, 
	value_count BIGINT, 
	null_count BIGINT, 
	min_value VARCHAR, 
	max_value VARCHAR, 
	contains_nan BIGINT, 
	extra_stats VARCHAR
);
INSERT INTO "ducklake_file_column_stats" VALUES(0,1,1,37,3,0,'1','3',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(0,1,2,59,3,0,'a','b',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(0,1,3,37,3,0,'1','4',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(1,3,1,43,3,0,'1','4',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(1,3,2,65,3,0,'a','b',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(2,5,1,41,2,0,'a','b',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(2,5,2,47,2,0,'3','4',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(2,5,3,46,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(2,5,4,46,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(2,5,5,38,2,0,'1','4',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(2,5,6,39,2,0,'2','4',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(4,1,1,33,2,0,'4','5',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(4,1,2,35,2,0,'b','c',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(4,1,3,35,1,1,'8','8',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(5,3,1,35,1,1,'8','8',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(5,3,2,41,2,0,'b','c',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(6,5,1,36,1,0,'b','b',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(6,5,2,39,1,0,'12','12',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(6,5,3,39,1,0,'2','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(6,5,4,39,1,0,'2','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(6,5,5,35,1,0,'4','4',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(6,5,6,35,1,0,'8','8',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(7,5,1,36,1,0,'c','c',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(7,5,2,31,0,1,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(7,5,3,39,1,0,'0','0',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(7,5,4,39,1,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(7,5,5,31,0,1,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(7,5,6,31,0,1,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(8,7,1,33,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(8,7,2,52,2,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(8,7,3,47,2,0,'1','5',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(8,7,4,43,2,0,'new','x',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(9,9,1,58,2,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(9,9,2,39,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(9,9,3,43,2,0,'new','x',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(9,9,4,47,2,0,'1','5',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(12,7,1,29,1,0,'2','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(12,7,2,29,1,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(12,7,3,39,1,0,'2','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(12,7,4,36,1,0,'y','y',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(13,7,1,28,1,0,'3','3',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(13,7,2,29,1,0,'2','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(13,7,3,39,1,0,'0','0',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(13,7,4,36,1,0,'z','z',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(14,9,1,29,1,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(14,9,2,29,1,0,'2','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(14,9,3,36,1,0,'y','y',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(14,9,4,39,1,0,'2','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(15,9,1,29,1,0,'2','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(15,9,2,28,1,0,'3','3',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(15,9,3,36,1,0,'z','z',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(15,9,4,39,1,0,'0','0',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(16,11,1,52,2,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(16,11,2,33,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(16,11,3,47,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(16,11,4,39,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(16,11,5,39,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(16,11,6,41,2,0,'a','b',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(16,11,7,41,2,0,'a','b',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(17,13,1,35,1,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(17,13,2,47,1,0,'3','3',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(17,13,3,35,1,0,'2','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(19,11,1,29,1,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(19,11,2,29,1,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(19,11,3,39,1,0,'5','5',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(19,11,4,35,1,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(19,11,5,35,1,0,'4','4',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(19,11,6,31,0,1,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(19,11,7,36,1,0,'a','a',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(20,11,1,29,1,0,'2','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(20,11,2,29,1,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(20,11,3,39,1,0,'8','8',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(20,11,4,35,1,0,'8','8',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(20,11,5,35,1,0,'8','8',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(20,11,6,36,1,0,'c','c',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(20,11,7,36,1,0,'c','c',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(21,13,1,29,1,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(21,13,2,47,1,0,'7','7',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(21,13,3,35,1,0,'4','4',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(22,13,1,29,1,0,'2','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(22,13,2,47,1,0,'8','8',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(22,13,3,35,1,0,'8','8',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(23,15,1,29,1,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(23,15,3,35,1,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(23,15,5,42,1,0,'1.50','1.50',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(23,15,7,42,1,0,'d','d',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(23,15,8,40,1,0,'2024-01-01','2024-01-01',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(24,15,1,39,1,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(24,15,3,36,1,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(24,15,5,43,1,0,'1.50','1.50',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(24,15,7,43,1,0,'d','d',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(24,15,8,42,1,0,'2024-01-01','2024-01-01',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(25,17,1,33,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(25,17,2,37,2,0,'10','20',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(25,17,3,35,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(25,17,4,33,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(25,17,6,39,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(25,17,7,41,2,0,'x','y',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(26,18,1,33,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(26,18,2,36,2,0,'10','x',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(27,19,1,33,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(27,19,2,37,2,0,'10','20',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(28,20,1,33,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(28,20,2,33,2,0,'2024-01-01','2025-02-02',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(28,20,3,35,2,0,'a','b',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(29,23,1,29,1,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(29,23,2,29,1,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(30,24,1,33,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(30,24,2,37,2,0,'10','20',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(31,25,1,29,1,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(31,25,2,31,1,0,'10','10',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(32,26,1,29,1,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(32,26,2,30,1,0,'x','x',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(33,27,1,29,1,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(33,27,2,31,1,0,'10','10',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(34,28,1,37,3,0,'1','3',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(34,28,2,59,3,0,'a','b',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(34,28,3,37,3,0,'1','4',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(35,29,1,33,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(35,29,2,52,2,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(35,29,3,33,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(36,31,1,33,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(36,31,2,52,2,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(36,31,3,33,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(37,33,1,57,3,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(37,33,2,57,3,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(37,33,3,43,3,0,'1','4',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(38,35,1,33,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(38,35,2,52,2,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(38,35,3,33,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(38,35,4,39,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(39,37,1,39,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(39,37,2,58,2,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(39,37,3,47,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(40,39,1,35,1,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(40,39,2,39,1,0,'3','3',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(41,19,1,39,2,0,'1','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(41,19,2,43,2,0,'10','20',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(41,19,3,39,2,0,'10','20',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(42,41,1,43,3,0,'1','4',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(42,41,2,43,3,0,'1','3',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(43,25,1,35,1,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(43,25,2,37,1,0,'10','10',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(43,25,3,35,1,0,'10','10',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(45,43,1,29,1,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(45,43,3,29,1,0,'2','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(45,43,5,35,1,0,'3.50','3.50',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(45,43,6,30,1,0,'x','x',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(46,43,1,29,1,0,'2','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(46,43,3,35,1,0,'3','3',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(46,43,5,38,0,1,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(46,43,6,31,0,1,NULL,NULL,NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(47,7,1,29,1,0,'4','4',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(47,7,2,29,1,0,'2','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(47,7,3,39,1,0,'0','0',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(47,7,4,36,1,0,'w','w',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(48,9,1,29,1,0,'2','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(48,9,2,29,1,0,'4','4',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(48,9,3,36,1,0,'w','w',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(48,9,4,39,1,0,'0','0',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(49,1,1,29,1,0,'6','6',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(49,1,2,30,1,0,'c','c',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(49,1,3,29,1,0,'16','16',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(50,3,1,35,1,0,'16','16',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(50,3,2,36,1,0,'c','c',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(51,5,1,36,1,0,'c','c',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(51,5,2,39,1,0,'16','16',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(51,5,3,39,1,0,'1','1',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(51,5,4,39,1,0,'2','2',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(51,5,5,35,1,0,'16','16',NULL,NULL);
INSERT INTO "ducklake_file_column_stats" VALUES(51,5,6,35,1,0,'16','16',NULL,NULL);
CREATE TABLE ducklake_file_partition_value (
	data_file_id BIGINT, 
	table_id BIGINT, 
	partition_key_index BIGINT, 
	partition_value VARCHAR
);
CREATE TABLE ducklake_file_variant_stats (
	data_file_id BIGINT, 
	table_id BIGINT, 
	column_id BIGINT, 
	variant_path VARCHAR, 
	shredded_type VARCHAR, 
	column_size_bytes BIGINT, 
	value_count BIGINT, 
	null_count BIGINT, 
	min_value VARCHAR, 
	max_value VARCHAR, 
	contains_nan BIGINT, 
	extra_stats VARCHAR
);
CREATE TABLE ducklake_files_scheduled_for_deletion (
	data_file_id BIGINT, 
	path VARCHAR, 
	path_is_relative BIGINT, 
	schedule_start VARCHAR
);
CREATE TABLE ducklake_inlined_data_11_5 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"j" BIGINT, 
	"k" BIGINT, 
	"s" BIGINT, 
	"lo" BIGINT, 
	"hi" BIGINT, 
	"r" VARCHAR, 
	"n" VARCHAR
);
CREATE TABLE ducklake_inlined_data_13_5 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"j" BIGINT, 
	"s" VARCHAR, 
	"hi" BIGINT
);
CREATE TABLE ducklake_inlined_data_15_6 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"id" BIGINT, 
	"s" VARCHAR, 
	"m" VARCHAR
);
CREATE TABLE ducklake_inlined_data_15_7 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"id" BIGINT, 
	"s" VARCHAR, 
	"m" VARCHAR
);
CREATE TABLE ducklake_inlined_data_17_10 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"id" BIGINT, 
	"v" VARCHAR, 
	"w" VARCHAR, 
	"old" BIGINT, 
	"s" VARCHAR
);
CREATE TABLE ducklake_inlined_data_18_12 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"id" BIGINT, 
	"v" VARCHAR
);
CREATE TABLE ducklake_inlined_data_19_14 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"id" BIGINT, 
	"v" VARCHAR
);
CREATE TABLE ducklake_inlined_data_1_1 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"k" BIGINT, 
	"g" VARCHAR, 
	"v" BIGINT
);
CREATE TABLE ducklake_inlined_data_20_16 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"id" BIGINT, 
	"at" VARCHAR, 
	"g" VARCHAR
);
CREATE TABLE ducklake_inlined_data_20_17 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"id" BIGINT, 
	"at" VARCHAR, 
	"g" VARCHAR
);
CREATE TABLE ducklake_inlined_data_23_18 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"id" BIGINT, 
	"v" BIGINT
);
CREATE TABLE ducklake_inlined_data_24_19 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"k" BIGINT, 
	"v" VARCHAR
);
CREATE TABLE ducklake_inlined_data_25_21 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"id" BIGINT, 
	"v" VARCHAR
);
CREATE TABLE ducklake_inlined_data_25_33 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"id" BIGINT, 
	"v" BIGINT
);
CREATE TABLE ducklake_inlined_data_26_23 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"id" BIGINT, 
	"v" VARCHAR
);
CREATE TABLE ducklake_inlined_data_27_25 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"id" BIGINT, 
	"v" VARCHAR
);
CREATE TABLE ducklake_inlined_data_28_27 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"k" BIGINT, 
	"g" VARCHAR, 
	"v" BIGINT
);
CREATE TABLE ducklake_inlined_data_29_28 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"k" BIGINT, 
	"g" BIGINT, 
	"v" BIGINT
);
CREATE TABLE ducklake_inlined_data_31_29 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"k" BIGINT, 
	"g" BIGINT, 
	"v" BIGINT
);
CREATE TABLE ducklake_inlined_data_33_30 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"k" BIGINT, 
	"j" BIGINT, 
	"v" BIGINT
);
CREATE TABLE ducklake_inlined_data_35_31 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"a" BIGINT, 
	"b" BIGINT, 
	"c" BIGINT, 
	"v" BIGINT
);
CREATE TABLE ducklake_inlined_data_37_31 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"a" BIGINT, 
	"b" BIGINT, 
	"v" BIGINT
);
CREATE TABLE ducklake_inlined_data_39_31 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"b" BIGINT, 
	"v" BIGINT
);
CREATE TABLE ducklake_inlined_data_3_1 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"v" BIGINT, 
	"g" VARCHAR
);
CREATE TABLE ducklake_inlined_data_41_32 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"v" BIGINT, 
	"k" BIGINT
);
CREATE TABLE ducklake_inlined_data_43_34 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"id" BIGINT, 
	"s" VARCHAR, 
	"l" VARCHAR, 
	"u" VARCHAR
);
CREATE TABLE ducklake_inlined_data_5_2 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"g" VARCHAR, 
	"s" BIGINT, 
	"n" BIGINT, 
	"c" BIGINT, 
	"lo" BIGINT, 
	"hi" BIGINT
);
CREATE TABLE ducklake_inlined_data_7_4 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"k" BIGINT, 
	"g" BIGINT, 
	"at" BIGINT, 
	"v" VARCHAR
);
CREATE TABLE ducklake_inlined_data_9_4 (
	row_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"g" BIGINT, 
	"k" BIGINT, 
	"v" VARCHAR, 
	"at" BIGINT
);
CREATE TABLE ducklake_inlined_data_tables (
	table_id BIGINT, 
	table_name VARCHAR, 
	schema_version BIGINT
);
INSERT INTO "ducklake_inlined_data_tables" VALUES(1,'ducklake_inlined_data_1_1',1);
INSERT INTO "ducklake_inlined_data_tables" VALUES(3,'ducklake_inlined_data_3_1',1);
INSERT INTO "ducklake_inlined_data_tables" VALUES(5,'ducklake_inlined_data_5_2',2);
INSERT INTO "ducklake_inlined_data_tables" VALUES(7,'ducklake_inlined_data_7_4',4);
INSERT INTO "ducklake_inlined_data_tables" VALUES(9,'ducklake_inlined_data_9_4',4);
INSERT INTO "ducklake_inlined_data_tables" VALUES(11,'ducklake_inlined_data_11_5',5);
INSERT INTO "ducklake_inlined_data_tables" VALUES(13,'ducklake_inlined_data_13_5',5);
INSERT INTO "ducklake_inlined_data_tables" VALUES(15,'ducklake_inlined_data_15_6',6);
INSERT INTO "ducklake_inlined_data_tables" VALUES(15,'ducklake_inlined_data_15_7',7);
INSERT INTO "ducklake_inlined_data_tables" VALUES(17,'ducklake_inlined_data_17_10',10);
INSERT INTO "ducklake_inlined_data_tables" VALUES(18,'ducklake_inlined_data_18_12',12);
INSERT INTO "ducklake_inlined_data_tables" VALUES(19,'ducklake_inlined_data_19_14',14);
INSERT INTO "ducklake_inlined_data_tables" VALUES(20,'ducklake_inlined_data_20_16',16);
INSERT INTO "ducklake_inlined_data_tables" VALUES(20,'ducklake_inlined_data_20_17',17);
INSERT INTO "ducklake_inlined_data_tables" VALUES(23,'ducklake_inlined_data_23_18',18);
INSERT INTO "ducklake_inlined_data_tables" VALUES(24,'ducklake_inlined_data_24_19',19);
INSERT INTO "ducklake_inlined_data_tables" VALUES(25,'ducklake_inlined_data_25_21',21);
INSERT INTO "ducklake_inlined_data_tables" VALUES(26,'ducklake_inlined_data_26_23',23);
INSERT INTO "ducklake_inlined_data_tables" VALUES(27,'ducklake_inlined_data_27_25',25);
INSERT INTO "ducklake_inlined_data_tables" VALUES(28,'ducklake_inlined_data_28_27',27);
INSERT INTO "ducklake_inlined_data_tables" VALUES(29,'ducklake_inlined_data_29_28',28);
INSERT INTO "ducklake_inlined_data_tables" VALUES(31,'ducklake_inlined_data_31_29',29);
INSERT INTO "ducklake_inlined_data_tables" VALUES(33,'ducklake_inlined_data_33_30',30);
INSERT INTO "ducklake_inlined_data_tables" VALUES(35,'ducklake_inlined_data_35_31',31);
INSERT INTO "ducklake_inlined_data_tables" VALUES(37,'ducklake_inlined_data_37_31',31);
INSERT INTO "ducklake_inlined_data_tables" VALUES(39,'ducklake_inlined_data_39_31',31);
INSERT INTO "ducklake_inlined_data_tables" VALUES(41,'ducklake_inlined_data_41_32',32);
INSERT INTO "ducklake_inlined_data_tables" VALUES(25,'ducklake_inlined_data_25_33',33);
INSERT INTO "ducklake_inlined_data_tables" VALUES(43,'ducklake_inlined_data_43_34',34);
CREATE TABLE ducklake_macro (
	schema_id BIGINT, 
	macro_id BIGINT, 
	macro_name VARCHAR, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT
);
CREATE TABLE ducklake_macro_impl (
	macro_id BIGINT, 
	impl_id BIGINT, 
	dialect VARCHAR, 
	sql VARCHAR, 
	type VARCHAR
);
CREATE TABLE ducklake_macro_parameters (
	macro_id BIGINT, 
	impl_id BIGINT, 
	column_id BIGINT, 
	parameter_name VARCHAR, 
	parameter_type VARCHAR, 
	default_value VARCHAR, 
	default_value_type VARCHAR
);
CREATE TABLE ducklake_metadata (
	"key" VARCHAR NOT NULL, 
	value VARCHAR NOT NULL, 
	scope VARCHAR, 
	scope_id BIGINT
);
INSERT INTO "ducklake_metadata" VALUES('version','1.0',NULL,NULL);
INSERT INTO "ducklake_metadata" VALUES('created_by','Shelduck 0.1.0',NULL,NULL);
INSERT INTO "ducklake_metadata" VALUES('data_path','@LAKE@/data/',NULL,NULL);
INSERT INTO "ducklake_metadata" VALUES('encrypted','false',NULL,NULL);
INSERT INTO "ducklake_metadata" VALUES('data_inlining_row_limit','0',NULL,NULL);
CREATE TABLE ducklake_name_mapping (
	mapping_id BIGINT, 
	column_id BIGINT, 
	source_name VARCHAR, 
	target_field_id BIGINT, 
	parent_column BIGINT, 
	is_partition BIGINT
);
CREATE TABLE ducklake_partition_column (
	partition_id BIGINT, 
	table_id BIGINT, 
	partition_key_index BIGINT, 
	column_id BIGINT, 
	transform VARCHAR
);
INSERT INTO "ducklake_partition_column" VALUES(21,20,0,2,'year');
INSERT INTO "ducklake_partition_column" VALUES(21,20,1,3,'bucket(4)');
CREATE TABLE ducklake_partition_info (
	partition_id BIGINT, 
	table_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT
);
INSERT INTO "ducklake_partition_info" VALUES(21,20,29,NULL);
CREATE TABLE ducklake_schema (
	schema_id BIGINT, 
	schema_uuid VARCHAR, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	schema_name VARCHAR, 
	path VARCHAR, 
	path_is_relative BIGINT, 
	PRIMARY KEY (schema_id)
);
INSERT INTO "ducklake_schema" VALUES(0,'5ca47ebb-ed9a-477e-8216-bb66d58870f1',0,NULL,'main','main/',1);
CREATE TABLE ducklake_schema_versions (
	begin_snapshot BIGINT, 
	schema_version BIGINT, 
	table_id BIGINT
);
INSERT INTO "ducklake_schema_versions" VALUES(1,1,1);
INSERT INTO "ducklake_schema_versions" VALUES(1,1,3);
INSERT INTO "ducklake_schema_versions" VALUES(3,2,5);
INSERT INTO "ducklake_schema_versions" VALUES(6,4,7);
INSERT INTO "ducklake_schema_versions" VALUES(6,4,9);
INSERT INTO "ducklake_schema_versions" VALUES(9,5,11);
INSERT INTO "ducklake_schema_versions" VALUES(9,5,13);
INSERT INTO "ducklake_schema_versions" VALUES(12,6,15);
INSERT INTO "ducklake_schema_versions" VALUES(14,7,15);
INSERT INTO "ducklake_schema_versions" VALUES(18,10,17);
INSERT INTO "ducklake_schema_versions" VALUES(21,12,18);
INSERT INTO "ducklake_schema_versions" VALUES(24,14,19);
INSERT INTO "ducklake_schema_versions" VALUES(27,16,20);
INSERT INTO "ducklake_schema_versions" VALUES(29,17,20);
INSERT INTO "ducklake_schema_versions" VALUES(30,18,23);
INSERT INTO "ducklake_schema_versions" VALUES(32,19,24);
INSERT INTO "ducklake_schema_versions" VALUES(35,21,25);
INSERT INTO "ducklake_schema_versions" VALUES(38,23,26);
INSERT INTO "ducklake_schema_versions" VALUES(41,25,27);
INSERT INTO "ducklake_schema_versions" VALUES(44,27,28);
INSERT INTO "ducklake_schema_versions" VALUES(46,28,29);
INSERT INTO "ducklake_schema_versions" VALUES(48,29,31);
INSERT INTO "ducklake_schema_versions" VALUES(50,30,33);
INSERT INTO "ducklake_schema_versions" VALUES(52,31,35);
INSERT INTO "ducklake_schema_versions" VALUES(52,31,37);
INSERT INTO "ducklake_schema_versions" VALUES(52,31,39);
INSERT INTO "ducklake_schema_versions" VALUES(55,32,41);
INSERT INTO "ducklake_schema_versions" VALUES(57,33,25);
INSERT INTO "ducklake_schema_versions" VALUES(58,34,43);
CREATE TABLE ducklake_snapshot (
	snapshot_id BIGINT, 
	snapshot_time VARCHAR, 
	schema_version BIGINT, 
	next_catalog_id BIGINT, 
	next_file_id BIGINT, 
	PRIMARY KEY (snapshot_id)
);
INSERT INTO "ducklake_snapshot" VALUES(0,'2026-11-22 15:59:30.687557+00',0,1,0);
INSERT INTO "ducklake_snapshot" VALUES(1,'2026-11-22 15:59:30.835866+00',1,5,0);
INSERT INTO "ducklake_snapshot" VALUES(2,'2026-11-22 15:59:46.523915+00',1,5,2);
INSERT INTO "ducklake_snapshot" VALUES(3,'2026-11-22 15:59:51.444291+00',2,7,3);
INSERT INTO "ducklake_snapshot" VALUES(4,'2026-11-22 15:59:51.499723+00',3,7,3);
INSERT INTO "ducklake_snapshot" VALUES(5,'2026-11-22 16:00:03.078791+00',3,7,8);
INSERT INTO "ducklake_snapshot" VALUES(6,'2026-11-22 16:00:03.138566+00',4,11,8);
INSERT INTO "ducklake_snapshot" VALUES(7,'2026-11-22 16:00:05.112904+00',4,11,10);
INSERT INTO "ducklake_snapshot" VALUES(8,'2026-11-22 16:00:13.903023+00',4,11,16);
INSERT INTO "ducklake_snapshot" VALUES(9,'2026-11-22 16:00:13.945111+00',5,15,16);
INSERT INTO "ducklake_snapshot" VALUES(10,'2026-11-22 16:00:16.429395+00',5,15,18);
INSERT INTO "ducklake_snapshot" VALUES(11,'2026-11-22 16:00:24.295255+00',5,15,23);
INSERT INTO "ducklake_snapshot" VALUES(12,'2026-11-22 16:00:24.312111+00',6,16,23);
INSERT INTO "ducklake_snapshot" VALUES(13,'2026-11-22 16:00:25.638381+00',6,16,24);
INSERT INTO "ducklake_snapshot" VALUES(14,'2026-11-22 16:00:25.675678+00',7,16,24);
INSERT INTO "ducklake_snapshot" VALUES(15,'2026-11-22 16:00:26.181426+00',7,16,25);
INSERT INTO "ducklake_snapshot" VALUES(16,'2026-11-22 16:00:26.221735+00',8,16,25);
INSERT INTO "ducklake_snapshot" VALUES(17,'2026-11-22 16:00:26.801358+00',9,17,25);
INSERT INTO "ducklake_snapshot" VALUES(18,'2026-11-22 16:00:26.856315+00',10,18,25);
INSERT INTO "ducklake_snapshot" VALUES(19,'2026-11-22 16:00:27.209319+00',10,18,26);
INSERT INTO "ducklake_snapshot" VALUES(20,'2026-11-22 16:00:27.327773+00',11,18,26);
INSERT INTO "ducklake_snapshot" VALUES(21,'2026-11-22 16:00:27.417813+00',12,19,26);
INSERT INTO "ducklake_snapshot" VALUES(22,'2026-11-22 16:00:27.730814+00',12,19,27);
INSERT INTO "ducklake_snapshot" VALUES(23,'2026-11-22 16:00:27.804817+00',13,19,27);
INSERT INTO "ducklake_snapshot" VALUES(24,'2026-11-22 16:00:27.834995+00',14,20,27);
INSERT INTO "ducklake_snapshot" VALUES(25,'2026-11-22 16:00:28.032881+00',14,20,28);
INSERT INTO "ducklake_snapshot" VALUES(26,'2026-11-22 16:00:28.056805+00',15,20,28);
INSERT INTO "ducklake_snapshot" VALUES(27,'2026-11-22 16:00:28.122275+00',16,21,28);
INSERT INTO "ducklake_snapshot" VALUES(28,'2026-11-22 16:00:28.351028+00',16,21,29);
INSERT INTO "ducklake_snapshot" VALUES(29,'2026-11-22 16:00:28.366502+00',17,23,29);
INSERT INTO "ducklake_snapshot" VALUES(30,'2026-11-22 16:00:28.421494+00',18,24,29);
INSERT INTO "ducklake_snapshot" VALUES(31,'2026-11-22 16:00:28.806894+00',18,24,30);
INSERT INTO "ducklake_snapshot" VALUES(32,'2026-11-22 16:00:28.864939+00',19,25,30);
INSERT INTO "ducklake_snapshot" VALUES(33,'2026-11-22 16:00:29.081967+00',19,25,31);
INSERT INTO "ducklake_snapshot" VALUES(34,'2026-11-22 16:00:29.192809+00',20,25,31);
INSERT INTO "ducklake_snapshot" VALUES(35,'2026-11-22 16:00:29.215977+00',21,26,31);
INSERT INTO "ducklake_snapshot" VALUES(36,'2026-11-22 16:00:29.385797+00',21,26,32);
INSERT INTO "ducklake_snapshot" VALUES(37,'2026-11-22 16:00:29.405471+00',22,26,32);
INSERT INTO "ducklake_snapshot" VALUES(38,'2026-11-22 16:00:29.469806+00',23,27,32);
INSERT INTO "ducklake_snapshot" VALUES(39,'2026-11-22 16:00:29.832514+00',23,27,33);
INSERT INTO "ducklake_snapshot" VALUES(40,'2026-11-22 16:00:29.84417+00',24,27,33);
INSERT INTO "ducklake_snapshot" VALUES(41,'2026-11-22 16:00:29.898237+00',25,28,33);
INSERT INTO "ducklake_snapshot" VALUES(42,'2026-11-22 16:00:30.190657+00',25,28,34);
INSERT INTO "ducklake_snapshot" VALUES(43,'2026-11-22 16:00:30.204184+00',26,28,34);
INSERT INTO "ducklake_snapshot" VALUES(44,'2026-11-22 16:00:30.247229+00',27,29,34);
INSERT INTO "ducklake_snapshot" VALUES(45,'2026-11-22 16:00:31.03695+00',27,29,35);
INSERT INTO "ducklake_snapshot" VALUES(46,'2026-11-22 16:00:31.108683+00',28,31,35);
INSERT INTO "ducklake_snapshot" VALUES(47,'2026-11-22 16:00:31.712977+00',28,31,36);
INSERT INTO "ducklake_snapshot" VALUES(48,'2026-11-22 16:00:31.834974+00',29,33,36);
INSERT INTO "ducklake_snapshot" VALUES(49,'2026-11-22 16:00:32.219153+00',29,33,37);
INSERT INTO "ducklake_snapshot" VALUES(50,'2026-11-22 16:00:32.271343+00',30,35,37);
INSERT INTO "ducklake_snapshot" VALUES(51,'2026-11-22 16:00:33.689632+00',30,35,38);
INSERT INTO "ducklake_snapshot" VALUES(52,'2026-11-22 16:00:33.786676+00',31,41,38);
INSERT INTO "ducklake_snapshot" VALUES(53,'2026-11-22 16:00:36.723885+00',31,41,41);
INSERT INTO "ducklake_snapshot" VALUES(54,'2026-11-22 16:00:37.479903+00',31,41,42);
INSERT INTO "ducklake_snapshot" VALUES(55,'2026-11-22 16:00:38.199752+00',32,43,43);
INSERT INTO "ducklake_snapshot" VALUES(56,'2026-11-22 16:00:38.614604+00',32,43,44);
INSERT INTO "ducklake_snapshot" VALUES(57,'2026-11-22 16:00:38.748537+00',33,43,45);
INSERT INTO "ducklake_snapshot" VALUES(58,'2026-11-22 16:00:39.658007+00',34,44,45);
INSERT INTO "ducklake_snapshot" VALUES(59,'2026-11-22 16:00:39.815016+00',34,44,46);
INSERT INTO "ducklake_snapshot" VALUES(60,'2026-11-22 16:00:40.194023+00',34,44,47);
INSERT INTO "ducklake_snapshot" VALUES(61,'2026-11-22 16:00:46.23999+00',34,44,49);
INSERT INTO "ducklake_snapshot" VALUES(62,'2026-11-22 16:00:54.17508+00',34,44,52);
CREATE TABLE ducklake_snapshot_changes (
	snapshot_id BIGINT, 
	changes_made VARCHAR, 
	author VARCHAR, 
	commit_message VARCHAR, 
	commit_extra_info VARCHAR, 
	PRIMARY KEY (snapshot_id)
);
INSERT INTO "ducklake_snapshot_changes" VALUES(0,'created_schema:"main"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(1,'created_table:"main"."dup",created_table:"main"."dup$p"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(2,'inserted_into_table:1,inserted_into_table:3',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(3,'created_table:"main"."dup$m",inserted_into_table:5',NULL,'job 1',NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(4,'altered_table:1',NULL,'job 1',NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(5,'inserted_into_table:1,inserted_into_table:3,inserted_into_table:5,deleted_from_table:5',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(6,'created_table:"main"."uni",created_table:"main"."uni$r"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(7,'inserted_into_table:7,inserted_into_table:9',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(8,'inserted_into_table:7,inserted_into_table:9,deleted_from_table:7,deleted_from_table:9',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(9,'created_table:"main"."agg",created_table:"main"."agg$few"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(10,'inserted_into_table:11,inserted_into_table:13',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(11,'inserted_into_table:11,inserted_into_table:13,deleted_from_table:11,deleted_from_table:13',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(12,'created_table:"main"."small"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(13,'inserted_into_table:15',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(14,'altered_table:15',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(15,'inline_flush:15,rewrite_delete:15',NULL,'write new types into main.small',NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(16,'altered_table:15',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(17,'created_view:"main"."seen"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(18,'created_table:"main"."pending"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(19,'inserted_into_table:17',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(20,'altered_table:17',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(21,'created_table:"main"."waiting"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(22,'inserted_into_table:18',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(23,'altered_table:18',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(24,'created_table:"main"."running"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(25,'inserted_into_table:19',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(26,'altered_table:19',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(27,'created_table:"main"."laid_out"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(28,'inserted_into_table:20',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(29,'altered_table:20',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(30,'created_table:"main"."rewritten"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(31,'inserted_into_table:23',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(32,'created_table:"main"."modified"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(33,'inserted_into_table:24',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(34,'altered_table:24',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(35,'created_table:"main"."ended"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(36,'inserted_into_table:25',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(37,'altered_table:25',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(38,'created_table:"main"."failed"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(39,'inserted_into_table:26',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(40,'altered_table:26',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(41,'created_table:"main"."given_up"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(42,'inserted_into_table:27',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(43,'altered_table:27',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(44,'created_table:"main"."filling"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(45,'inserted_into_table:28',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(46,'created_table:"main"."sorted"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(47,'inserted_into_table:29',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(48,'created_table:"main"."measured"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(49,'inserted_into_table:31',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(50,'created_table:"main"."folding"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(51,'inserted_into_table:33',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(52,'created_table:"main"."remaking",created_table:"main"."remaking$r",created_table:"main"."remaking$r2"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(53,'inserted_into_table:35,inserted_into_table:37,inserted_into_table:39',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(54,'inline_flush:19,rewrite_delete:19',NULL,'job 4',NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(55,'created_table:"main"."filling$by_v",inserted_into_table:41',NULL,'job 11',NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(56,'inline_flush:25,rewrite_delete:25',NULL,'job 8',NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(57,'altered_table:25,inline_flush:25,rewrite_delete:25',NULL,'job 8',NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(58,'created_table:"main"."theirs"',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(59,'inserted_into_table:43',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(60,'inserted_into_table:43',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(61,'inserted_into_table:7,inserted_into_table:9',NULL,NULL,NULL);
INSERT INTO "ducklake_snapshot_changes" VALUES(62,'inserted_into_table:1,inserted_into_table:3,inserted_into_table:5,deleted_from_table:5',NULL,NULL,NULL);
CREATE TABLE ducklake_sort_expression (
	sort_id BIGINT, 
	table_id BIGINT, 
	sort_key_index BIGINT, 
	expression VARCHAR, 
	dialect VARCHAR, 
	sort_direction VARCHAR, 
	null_order VARCHAR
);
INSERT INTO "ducklake_sort_expression" VALUES(2,1,0,'k','duckdb','ASC','NULLS_LAST');
INSERT INTO "ducklake_sort_expression" VALUES(4,3,0,'v','duckdb','ASC','NULLS_LAST');
INSERT INTO "ducklake_sort_expression" VALUES(4,3,1,'g','duckdb','ASC','NULLS_LAST');
INSERT INTO "ducklake_sort_expression" VALUES(6,5,0,'g','duckdb','ASC','NULLS_LAST');
INSERT INTO "ducklake_sort_expression" VALUES(8,7,0,'k','duckdb','ASC','NULLS_LAST');
INSERT INTO "ducklake_sort_expression" VALUES(8,7,1,'g','duckdb','ASC','NULLS_LAST');
INSERT INTO "ducklake_sort_expression" VALUES(10,9,0,'g','duckdb','ASC','NULLS_LAST');
INSERT INTO "ducklake_sort_expression" VALUES(10,9,1,'k','duckdb','ASC','NULLS_LAST');
INSERT INTO "ducklake_sort_expression" VALUES(12,11,0,'j','duckdb','ASC','NULLS_LAST');
INSERT INTO "ducklake_sort_expression" VALUES(12,11,1,'k','duckdb','ASC','NULLS_LAST');
INSERT INTO "ducklake_sort_expression" VALUES(14,13,0,'j','duckdb','ASC','NULLS_LAST');
INSERT INTO "ducklake_sort_expression" VALUES(22,20,0,'id','duckdb','DESC','NULLS_LAST');
INSERT INTO "ducklake_sort_expression" VALUES(30,29,0,'k','duckdb','ASC','NULLS_LAST');
INSERT INTO "ducklake_sort_expression" VALUES(32,31,0,'k','duckdb','ASC','NULLS_LAST');
INSERT INTO "ducklake_sort_expression" VALUES(34,33,0,'k','duckdb','ASC','NULLS_LAST');
INSERT INTO "ducklake_sort_expression" VALUES(34,33,1,'j','duckdb','ASC','NULLS_LAST');
INSERT INTO "ducklake_sort_expression" VALUES(36,35,0,'a','duckdb','ASC','NULLS_LAST');
INSERT INTO "ducklake_sort_expression" VALUES(36,35,1,'b','duckdb','ASC','NULLS_LAST');
INSERT INTO "ducklake_sort_expression" VALUES(36,35,2,'c','duckdb','ASC','NULLS_LAST');
INSERT INTO "ducklake_sort_expression" VALUES(38,37,0,'a','duckdb','ASC','NULLS_LAST');
INSERT INTO "ducklake_sort_expression" VALUES(38,37,1,'b','duckdb','ASC','NULLS_LAST');
INSERT INTO "ducklake_sort_expression" VALUES(40,39,0,'b','duckdb','ASC','NULLS_LAST');
INSERT INTO "ducklake_sort_expression" VALUES(42,41,0,'v','duckdb','ASC','NULLS_LAST');
INSERT INTO "ducklake_sort_expression" VALUES(42,41,1,'k','duckdb','ASC','NULLS_LAST');
CREATE TABLE ducklake_sort_info (
	sort_id BIGINT, 
	table_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT
);
INSERT INTO "ducklake_sort_info" VALUES(2,1,1,NULL);
INSERT INTO "ducklake_sort_info" VALUES(4,3,1,NULL);
INSERT INTO "ducklake_sort_info" VALUES(6,5,3,NULL);
INSERT INTO "ducklake_sort_info" VALUES(8,7,6,NULL);
INSERT INTO "ducklake_sort_info" VALUES(10,9,6,NULL);
INSERT INTO "ducklake_sort_info" VALUES(12,11,9,NULL);
INSERT INTO "ducklake_sort_info" VALUES(14,13,9,NULL);
INSERT INTO "ducklake_sort_info" VALUES(22,20,29,NULL);
INSERT INTO "ducklake_sort_info" VALUES(30,29,46,NULL);
INSERT INTO "ducklake_sort_info" VALUES(32,31,48,NULL);
INSERT INTO "ducklake_sort_info" VALUES(34,33,50,NULL);
INSERT INTO "ducklake_sort_info" VALUES(36,35,52,NULL);
INSERT INTO "ducklake_sort_info" VALUES(38,37,52,NULL);
INSERT INTO "ducklake_sort_info" VALUES(40,39,52,NULL);
INSERT INTO "ducklake_sort_info" VALUES(42,41,55,NULL);
CREATE TABLE ducklake_table (
	table_id BIGINT, 
	table_uuid VARCHAR, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	schema_id BIGINT, 
	table_name VARCHAR, 
	path VARCHAR, 
	path_is_relative BIGINT
);
INSERT INTO "ducklake_table" VALUES(1,'dd74baf9-2cb5-462c-85e9-c6029953d0b8',1,NULL,0,'dup','dup/',1);
INSERT INTO "ducklake_table" VALUES(3,'5932b04b-81a4-42ac-ab5a-c1c9a2fad83f',1,NULL,0,'dup$p','5932b04b-81a4-42ac-ab5a-c1c9a2fad83f/',1);
INSERT INTO "ducklake_table" VALUES(5,'718c4472-c571-4dd1-8a18-46f667ffccc2',3,NULL,0,'dup$m','718c4472-c571-4dd1-8a18-46f667ffccc2/',1);
INSERT INTO "ducklake_table" VALUES(7,'7b7e7a46-5e3f-4c48-b9e0-581526aedaf7',6,NULL,0,'uni','uni/',1);
INSERT INTO "ducklake_table" VALUES(9,'6332b8ae-03f7-41d4-883b-0c3596b1905b',6,NULL,0,'uni$r','6332b8ae-03f7-41d4-883b-0c3596b1905b/',1);
INSERT INTO "ducklake_table" VALUES(11,'0e4d03e5-6fc2-4c3b-87e3-375dbbb0d377',9,NULL,0,'agg','agg/',1);
INSERT INTO "ducklake_table" VALUES(13,'5ac7f780-8306-43ee-afed-6b5df8597d18',9,NULL,0,'agg$few','5ac7f780-8306-43ee-afed-6b5df8597d18/',1);
INSERT INTO "ducklake_table" VALUES(15,'eec82515-7b8d-44f7-85e0-16955d31e0a5',12,NULL,0,'small','small/',1);
INSERT INTO "ducklake_table" VALUES(17,'30efd6e2-707e-46a6-8b75-3f0384f847e8',18,NULL,0,'pending','pending/',1);
INSERT INTO "ducklake_table" VALUES(18,'d3aaba40-9521-40a0-8029-21ea80c65cf1',21,NULL,0,'waiting','waiting/',1);
INSERT INTO "ducklake_table" VALUES(19,'b33e1964-bc66-47ed-8615-d023a057269c',24,NULL,0,'running','running/',1);
INSERT INTO "ducklake_table" VALUES(20,'0505a70e-5ef9-41c1-84a0-22455482256b',27,NULL,0,'laid_out','laid_out/',1);
INSERT INTO "ducklake_table" VALUES(23,'a4d6d182-5fba-4ae4-af5d-b92613363c6c',30,NULL,0,'rewritten','rewritten/',1);
INSERT INTO "ducklake_table" VALUES(24,'562b24aa-a1fb-4138-b361-81c15cd9ffea',32,NULL,0,'modified','modified/',1);
INSERT INTO "ducklake_table" VALUES(25,'a598021e-3706-42b0-94cb-8c942f58b60b',35,NULL,0,'ended','ended/',1);
INSERT INTO "ducklake_table" VALUES(26,'55e69a53-3dd2-43d2-b3b6-91bfc5efa869',38,NULL,0,'failed','failed/',1);
INSERT INTO "ducklake_table" VALUES(27,'69aee1b3-7308-483e-ace4-a7ed74db9dac',41,NULL,0,'given_up','given_up/',1);
INSERT INTO "ducklake_table" VALUES(28,'cdfccde8-62c4-409c-aceb-ac3bbffc7c0d',44,NULL,0,'filling','filling/',1);
INSERT INTO "ducklake_table" VALUES(29,'08895d0c-b60e-4df2-a6e0-0187241b5b52',46,NULL,0,'sorted','sorted/',1);
INSERT INTO "ducklake_table" VALUES(31,'5128e708-91c0-4819-9486-3f173f146b74',48,NULL,0,'measured','measured/',1);
INSERT INTO "ducklake_table" VALUES(33,'dad75d67-8e42-414a-9b65-bcf9a58279e1',50,NULL,0,'folding','folding/',1);
INSERT INTO "ducklake_table" VALUES(35,'de2094a4-1b82-457b-af79-e50d9be50476',52,NULL,0,'remaking','remaking/',1);
INSERT INTO "ducklake_table" VALUES(37,'0809ac51-a6ae-41c0-917a-715dcaab736e',52,NULL,0,'remaking$r','0809ac51-a6ae-41c0-917a-715dcaab736e/',1);
INSERT INTO "ducklake_table" VALUES(39,'d10914f8-6acc-4be8-9fb7-6a0f34d3d03b',52,NULL,0,'remaking$r2','d10914f8-6acc-4be8-9fb7-6a0f34d3d03b/',1);
INSERT INTO "ducklake_table" VALUES(41,'96278879-126b-4e7c-875a-5a371af5a644',55,NULL,0,'filling$by_v','96278879-126b-4e7c-875a-5a371af5a644/',1);
INSERT INTO "ducklake_table" VALUES(43,'c02fda6e-fb44-41a3-8b3c-a44c7fb49cbd',58,NULL,0,'theirs','theirs/',1);
CREATE TABLE ducklake_table_column_stats (
	table_id BIGINT, 
	column_id BIGINT, 
	contains_null BIGINT, 
	contains_nan BIGINT, 
	min_value VARCHAR, 
	max_value VARCHAR, 
	extra_stats VARCHAR
);
INSERT INTO "ducklake_table_column_stats" VALUES(1,1,0,NULL,'1','6',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(1,2,0,NULL,'a','c',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(1,3,1,NULL,'1','16',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(3,1,1,NULL,'1','16',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(3,2,0,NULL,'a','c',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(5,1,0,NULL,'a','c',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(5,2,1,NULL,'3','16',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(5,3,0,NULL,'0','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(5,4,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(5,5,1,NULL,'1','16',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(5,6,1,NULL,'2','16',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(7,1,0,NULL,'1','4',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(7,2,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(7,3,0,NULL,'0','5',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(7,4,0,NULL,'new','z',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(9,1,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(9,2,0,NULL,'1','4',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(9,3,0,NULL,'new','z',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(9,4,0,NULL,'0','5',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(11,1,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(11,2,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(11,3,0,NULL,'1','8',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(11,4,0,NULL,'1','8',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(11,5,0,NULL,'1','8',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(11,6,1,NULL,'a','c',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(11,7,0,NULL,'a','c',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(13,1,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(13,2,0,NULL,'3','8',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(13,3,0,NULL,'2','8',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(15,1,0,NULL,'1','1',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(15,3,0,NULL,'1','1',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(15,5,0,NULL,'1.50','1.50',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(15,7,0,NULL,'d','d',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(15,8,0,NULL,'2024-01-01','2024-01-01',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(17,1,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(17,2,0,NULL,'10','20',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(17,3,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(17,4,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(17,6,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(17,7,0,NULL,'x','y',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(18,1,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(18,2,0,NULL,'10','x',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(19,1,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(19,2,0,NULL,'10','20',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(20,1,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(20,2,0,NULL,'2024-01-01','2025-02-02',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(20,3,0,NULL,'a','b',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(23,1,0,NULL,'1','1',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(23,2,0,NULL,'1','1',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(24,1,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(24,2,0,NULL,'10','20',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(25,1,0,NULL,'1','1',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(25,2,0,NULL,'10','10',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(26,1,0,NULL,'1','1',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(26,2,0,NULL,'x','x',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(27,1,0,NULL,'1','1',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(27,2,0,NULL,'10','10',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(28,1,0,NULL,'1','3',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(28,2,0,NULL,'a','b',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(28,3,0,NULL,'1','4',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(29,1,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(29,2,0,NULL,'1','1',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(29,3,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(31,1,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(31,2,0,NULL,'1','1',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(31,3,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(33,1,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(33,2,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(33,3,0,NULL,'1','4',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(35,1,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(35,2,0,NULL,'1','1',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(35,3,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(35,4,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(37,1,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(37,2,0,NULL,'1','1',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(37,3,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(39,1,0,NULL,'1','1',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(39,2,0,NULL,'3','3',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(41,1,0,NULL,'1','4',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(41,2,0,NULL,'1','3',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(43,1,0,NULL,'1','2',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(43,3,0,NULL,'2','3',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(43,5,1,NULL,'3.50','3.50',NULL);
INSERT INTO "ducklake_table_column_stats" VALUES(43,6,1,NULL,'x','x',NULL);
CREATE TABLE ducklake_table_stats (
	table_id BIGINT, 
	record_count BIGINT, 
	next_row_id BIGINT, 
	file_size_bytes BIGINT
);
INSERT INTO "ducklake_table_stats" VALUES(1,6,6,2658);
INSERT INTO "ducklake_table_stats" VALUES(3,6,6,2043);
INSERT INTO "ducklake_table_stats" VALUES(5,5,5,7010);
INSERT INTO "ducklake_table_stats" VALUES(7,5,5,4837);
INSERT INTO "ducklake_table_stats" VALUES(9,5,5,4849);
INSERT INTO "ducklake_table_stats" VALUES(11,4,4,5653);
INSERT INTO "ducklake_table_stats" VALUES(13,3,3,3310);
INSERT INTO "ducklake_table_stats" VALUES(15,1,1,1664);
INSERT INTO "ducklake_table_stats" VALUES(17,2,2,1619);
INSERT INTO "ducklake_table_stats" VALUES(18,2,2,664);
INSERT INTO "ducklake_table_stats" VALUES(19,2,2,667);
INSERT INTO "ducklake_table_stats" VALUES(20,2,2,883);
INSERT INTO "ducklake_table_stats" VALUES(23,1,1,662);
INSERT INTO "ducklake_table_stats" VALUES(24,2,2,664);
INSERT INTO "ducklake_table_stats" VALUES(25,1,1,663);
INSERT INTO "ducklake_table_stats" VALUES(26,1,1,655);
INSERT INTO "ducklake_table_stats" VALUES(27,1,1,663);
INSERT INTO "ducklake_table_stats" VALUES(28,3,3,917);
INSERT INTO "ducklake_table_stats" VALUES(29,2,2,914);
INSERT INTO "ducklake_table_stats" VALUES(31,2,2,914);
INSERT INTO "ducklake_table_stats" VALUES(33,3,3,964);
INSERT INTO "ducklake_table_stats" VALUES(35,2,2,1136);
INSERT INTO "ducklake_table_stats" VALUES(37,2,2,963);
INSERT INTO "ducklake_table_stats" VALUES(39,1,1,699);
INSERT INTO "ducklake_table_stats" VALUES(41,3,3,690);
INSERT INTO "ducklake_table_stats" VALUES(43,2,2,1833);
CREATE TABLE ducklake_tag (
	object_id BIGINT, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	"key" VARCHAR, 
	value VARCHAR
);
INSERT INTO "ducklake_tag" VALUES(1,1,NULL,'comment','plain');
INSERT INTO "ducklake_tag" VALUES(1,1,NULL,'owner','me');
INSERT INTO "ducklake_tag" VALUES(1,1,NULL,'shelduck.allowAutomaticWidening','never');
INSERT INTO "ducklake_tag" VALUES(1,1,NULL,'shelduck.keys','{"is":"TableKeys","model":{"is":"KeyModel","value":"DUPLICATE"},"columns":[1],"aggregations":[],"sequence":null,"distributed_by":[]}');
INSERT INTO "ducklake_tag" VALUES(1,1,4,'shelduck.rollups','["p"]');
INSERT INTO "ducklake_tag" VALUES(3,1,NULL,'shelduck.keys','{"is":"TableKeys","model":{"is":"KeyModel","value":"DUPLICATE"},"columns":[1,2],"aggregations":[],"sequence":null,"distributed_by":[]}');
INSERT INTO "ducklake_tag" VALUES(3,1,NULL,'shelduck.rollup','{"is":"Rollup","base":"dd74baf9-2cb5-462c-85e9-c6029953d0b8","name":"p","columns":[{"is":"RollupColumn","id":1,"source":3,"measure":null},{"is":"RollupColumn","id":2,"source":2,"measure":null}]}');
INSERT INTO "ducklake_tag" VALUES(5,3,NULL,'shelduck.keys','{"is":"TableKeys","model":{"is":"KeyModel","value":"AGGREGATE"},"columns":[1],"aggregations":[[2,{"is":"Aggregation","value":"SUM"}],[3,{"is":"Aggregation","value":"SUM"}],[4,{"is":"Aggregation","value":"SUM"}],[5,{"is":"Aggregation","value":"MIN"}],[6,{"is":"Aggregation","value":"MAX"}]],"sequence":null,"distributed_by":[]}');
INSERT INTO "ducklake_tag" VALUES(5,3,NULL,'shelduck.rollup','{"is":"Rollup","base":"dd74baf9-2cb5-462c-85e9-c6029953d0b8","name":"m","columns":[{"is":"RollupColumn","id":1,"source":2,"measure":null},{"is":"RollupColumn","id":2,"source":3,"measure":{"is":"Measure","value":"SUM"}},{"is":"RollupColumn","id":3,"source":3,"measure":{"is":"Measure","value":"COUNT"}},{"is":"RollupColumn","id":4,"source":null,"measure":{"is":"Measure","value":"COUNT"}},{"is":"RollupColumn","id":5,"source":3,"measure":{"is":"Measure","value":"MIN"}},{"is":"RollupColumn","id":6,"source":3,"measure":{"is":"Measure","value":"MAX"}}]}');
INSERT INTO "ducklake_tag" VALUES(1,4,NULL,'shelduck.rollups','["p","m"]');
INSERT INTO "ducklake_tag" VALUES(7,6,NULL,'shelduck.keys','{"is":"TableKeys","model":{"is":"KeyModel","value":"UNIQUE"},"columns":[1,2],"aggregations":[],"sequence":3,"distributed_by":[1]}');
INSERT INTO "ducklake_tag" VALUES(7,6,NULL,'shelduck.rollups','["r"]');
INSERT INTO "ducklake_tag" VALUES(9,6,NULL,'shelduck.keys','{"is":"TableKeys","model":{"is":"KeyModel","value":"UNIQUE"},"columns":[1,2],"aggregations":[],"sequence":4,"distributed_by":[]}');
INSERT INTO "ducklake_tag" VALUES(9,6,NULL,'shelduck.rollup','{"is":"Rollup","base":"7b7e7a46-5e3f-4c48-b9e0-581526aedaf7","name":"r","columns":[{"is":"RollupColumn","id":1,"source":2,"measure":null},{"is":"RollupColumn","id":2,"source":1,"measure":null},{"is":"RollupColumn","id":3,"source":4,"measure":null},{"is":"RollupColumn","id":4,"source":3,"measure":null}]}');
INSERT INTO "ducklake_tag" VALUES(11,9,NULL,'shelduck.keys','{"is":"TableKeys","model":{"is":"KeyModel","value":"AGGREGATE"},"columns":[1,2],"aggregations":[[3,{"is":"Aggregation","value":"SUM"}],[4,{"is":"Aggregation","value":"MIN"}],[5,{"is":"Aggregation","value":"MAX"}],[6,{"is":"Aggregation","value":"REPLACE"}],[7,{"is":"Aggregation","value":"REPLACE_IF_NOT_NULL"}]],"sequence":null,"distributed_by":[]}');
INSERT INTO "ducklake_tag" VALUES(11,9,NULL,'shelduck.rollups','["few"]');
INSERT INTO "ducklake_tag" VALUES(13,9,NULL,'shelduck.keys','{"is":"TableKeys","model":{"is":"KeyModel","value":"AGGREGATE"},"columns":[1],"aggregations":[[2,{"is":"Aggregation","value":"SUM"}],[3,{"is":"Aggregation","value":"MAX"}]],"sequence":null,"distributed_by":[]}');
INSERT INTO "ducklake_tag" VALUES(13,9,NULL,'shelduck.rollup','{"is":"Rollup","base":"0e4d03e5-6fc2-4c3b-87e3-375dbbb0d377","name":"few","columns":[{"is":"RollupColumn","id":1,"source":1,"measure":null},{"is":"RollupColumn","id":2,"source":3,"measure":{"is":"Measure","value":"SUM"}},{"is":"RollupColumn","id":3,"source":5,"measure":{"is":"Measure","value":"MAX"}}]}');
INSERT INTO "ducklake_tag" VALUES(15,12,16,'delta.enableTypeWidening','true');
INSERT INTO "ducklake_tag" VALUES(15,12,16,'delta.feature.typeWidening','supported');
INSERT INTO "ducklake_tag" VALUES(15,16,NULL,'shelduck.typeChangesForgottenAt','15');
INSERT INTO "ducklake_tag" VALUES(16,17,NULL,'shelduck.spark_sql','SELECT g, v + 1 AS w FROM `main`.`dup` AS `dup`');
INSERT INTO "ducklake_tag" VALUES(29,46,NULL,'shelduck.keys','{"is":"TableKeys","model":{"is":"KeyModel","value":"DUPLICATE"},"columns":[1],"aggregations":[],"sequence":null,"distributed_by":[]}');
INSERT INTO "ducklake_tag" VALUES(31,48,NULL,'shelduck.keys','{"is":"TableKeys","model":{"is":"KeyModel","value":"DUPLICATE"},"columns":[1],"aggregations":[],"sequence":null,"distributed_by":[]}');
INSERT INTO "ducklake_tag" VALUES(33,50,NULL,'shelduck.keys','{"is":"TableKeys","model":{"is":"KeyModel","value":"AGGREGATE"},"columns":[1,2],"aggregations":[[3,{"is":"Aggregation","value":"SUM"}]],"sequence":null,"distributed_by":[]}');
INSERT INTO "ducklake_tag" VALUES(35,52,NULL,'shelduck.keys','{"is":"TableKeys","model":{"is":"KeyModel","value":"AGGREGATE"},"columns":[1,2,3],"aggregations":[[4,{"is":"Aggregation","value":"SUM"}]],"sequence":null,"distributed_by":[]}');
INSERT INTO "ducklake_tag" VALUES(35,52,NULL,'shelduck.rollups','["r","r2"]');
INSERT INTO "ducklake_tag" VALUES(37,52,NULL,'shelduck.keys','{"is":"TableKeys","model":{"is":"KeyModel","value":"AGGREGATE"},"columns":[1,2],"aggregations":[[3,{"is":"Aggregation","value":"SUM"}]],"sequence":null,"distributed_by":[]}');
INSERT INTO "ducklake_tag" VALUES(37,52,NULL,'shelduck.rollup','{"is":"Rollup","base":"de2094a4-1b82-457b-af79-e50d9be50476","name":"r","columns":[{"is":"RollupColumn","id":1,"source":1,"measure":null},{"is":"RollupColumn","id":2,"source":2,"measure":null},{"is":"RollupColumn","id":3,"source":4,"measure":{"is":"Measure","value":"SUM"}}]}');
INSERT INTO "ducklake_tag" VALUES(39,52,NULL,'shelduck.keys','{"is":"TableKeys","model":{"is":"KeyModel","value":"AGGREGATE"},"columns":[1],"aggregations":[[2,{"is":"Aggregation","value":"SUM"}]],"sequence":null,"distributed_by":[]}');
INSERT INTO "ducklake_tag" VALUES(39,52,NULL,'shelduck.rollup','{"is":"Rollup","base":"de2094a4-1b82-457b-af79-e50d9be50476","name":"r2","columns":[{"is":"RollupColumn","id":1,"source":2,"measure":null},{"is":"RollupColumn","id":2,"source":4,"measure":{"is":"Measure","value":"SUM"}}]}');
INSERT INTO "ducklake_tag" VALUES(41,55,NULL,'shelduck.keys','{"is":"TableKeys","model":{"is":"KeyModel","value":"DUPLICATE"},"columns":[1,2],"aggregations":[],"sequence":null,"distributed_by":[]}');
INSERT INTO "ducklake_tag" VALUES(41,55,NULL,'shelduck.rollup','{"is":"Rollup","base":"cdfccde8-62c4-409c-aceb-ac3bbffc7c0d","name":"by_v","columns":[{"is":"RollupColumn","id":1,"source":3,"measure":null},{"is":"RollupColumn","id":2,"source":1,"measure":null}]}');
CREATE TABLE ducklake_view (
	view_id BIGINT, 
	view_uuid VARCHAR, 
	begin_snapshot BIGINT, 
	end_snapshot BIGINT, 
	schema_id BIGINT, 
	view_name VARCHAR, 
	dialect VARCHAR, 
	sql VARCHAR, 
	column_aliases VARCHAR
);
INSERT INTO "ducklake_view" VALUES(16,'d4732172-0dbb-42f6-bb27-33fe7330656b',17,NULL,0,'seen','duckdb','SELECT g, v + 1 AS w FROM {DUCKLAKE_CATALOG}."main"."dup" AS "dup"','');
CREATE TABLE shelduck_file_layout (
	data_file_id BIGINT NOT NULL, 
	layout_id BIGINT, 
	PRIMARY KEY (data_file_id)
);
INSERT INTO "shelduck_file_layout" VALUES(0,2);
INSERT INTO "shelduck_file_layout" VALUES(1,1);
INSERT INTO "shelduck_file_layout" VALUES(2,3);
INSERT INTO "shelduck_file_layout" VALUES(4,2);
INSERT INTO "shelduck_file_layout" VALUES(5,1);
INSERT INTO "shelduck_file_layout" VALUES(6,4);
INSERT INTO "shelduck_file_layout" VALUES(7,3);
INSERT INTO "shelduck_file_layout" VALUES(8,6);
INSERT INTO "shelduck_file_layout" VALUES(9,5);
INSERT INTO "shelduck_file_layout" VALUES(12,7);
INSERT INTO "shelduck_file_layout" VALUES(13,6);
INSERT INTO "shelduck_file_layout" VALUES(14,8);
INSERT INTO "shelduck_file_layout" VALUES(15,5);
INSERT INTO "shelduck_file_layout" VALUES(16,9);
INSERT INTO "shelduck_file_layout" VALUES(17,10);
INSERT INTO "shelduck_file_layout" VALUES(19,11);
INSERT INTO "shelduck_file_layout" VALUES(20,9);
INSERT INTO "shelduck_file_layout" VALUES(21,12);
INSERT INTO "shelduck_file_layout" VALUES(22,10);
INSERT INTO "shelduck_file_layout" VALUES(23,13);
INSERT INTO "shelduck_file_layout" VALUES(24,14);
INSERT INTO "shelduck_file_layout" VALUES(25,15);
INSERT INTO "shelduck_file_layout" VALUES(26,16);
INSERT INTO "shelduck_file_layout" VALUES(27,16);
INSERT INTO "shelduck_file_layout" VALUES(28,17);
INSERT INTO "shelduck_file_layout" VALUES(29,18);
INSERT INTO "shelduck_file_layout" VALUES(30,19);
INSERT INTO "shelduck_file_layout" VALUES(31,16);
INSERT INTO "shelduck_file_layout" VALUES(32,16);
INSERT INTO "shelduck_file_layout" VALUES(33,16);
INSERT INTO "shelduck_file_layout" VALUES(34,2);
INSERT INTO "shelduck_file_layout" VALUES(35,20);
INSERT INTO "shelduck_file_layout" VALUES(36,20);
INSERT INTO "shelduck_file_layout" VALUES(37,21);
INSERT INTO "shelduck_file_layout" VALUES(38,24);
INSERT INTO "shelduck_file_layout" VALUES(39,22);
INSERT INTO "shelduck_file_layout" VALUES(40,23);
INSERT INTO "shelduck_file_layout" VALUES(41,25);
INSERT INTO "shelduck_file_layout" VALUES(42,26);
INSERT INTO "shelduck_file_layout" VALUES(43,25);
INSERT INTO "shelduck_file_layout" VALUES(46,27);
INSERT INTO "shelduck_file_layout" VALUES(45,28);
INSERT INTO "shelduck_file_layout" VALUES(47,6);
INSERT INTO "shelduck_file_layout" VALUES(48,5);
INSERT INTO "shelduck_file_layout" VALUES(49,2);
INSERT INTO "shelduck_file_layout" VALUES(50,1);
INSERT INTO "shelduck_file_layout" VALUES(51,4);
CREATE TABLE shelduck_job (
	job_id BIGINT NOT NULL, 
	table_id BIGINT, 
	table_name VARCHAR, 
	state VARCHAR, 
	created VARCHAR, 
	finished VARCHAR, 
	work VARCHAR, 
	timeout BIGINT, 
	base_snapshot BIGINT, 
	schema_version BIGINT, 
	published_snapshot BIGINT, 
	message VARCHAR, 
	done_files BIGINT, 
	total_files BIGINT, 
	last_file BIGINT, 
	worker VARCHAR, 
	heartbeat VARCHAR, 
	PRIMARY KEY (job_id)
);
INSERT INTO "shelduck_job" VALUES(1,1,'main.dup','FINISHED','2026-11-22 15:59:46.565122+00','2026-11-22 15:59:51.49814+00','{"is":"JobWork","conversions":[],"clauses":[],"rewrites":false,"rollups":[{"is":"RollupSpec","name":"m","columns":["g"],"measures":[{"is":"MeasureSpec","name":"s","measure":{"is":"Measure","value":"SUM"},"column":"v"},{"is":"MeasureSpec","name":"n","measure":{"is":"Measure","value":"COUNT"},"column":"v"},{"is":"MeasureSpec","name":"c","measure":{"is":"Measure","value":"COUNT"},"column":null},{"is":"MeasureSpec","name":"lo","measure":{"is":"Measure","value":"MIN"},"column":"v"},{"is":"MeasureSpec","name":"hi","measure":{"is":"Measure","value":"MAX"},"column":"v"}],"duplicate_keys":null}],"refolds":false,"remakes":false,"indexes":[]}',86400,2,1,4,'',1,1,1,NULL,'2026-11-22 15:59:46.596471+00');
INSERT INTO "shelduck_job" VALUES(2,17,'main.pending','PENDING','2026-11-22 16:00:27.330463+00',NULL,'{"is":"JobWork","conversions":[{"is":"Conversion","column_id":2,"shadow_id":8,"source":"varchar","target":"INT","using":"v::int + 1","on_error_null":false,"clause":0,"parts":[2],"named":[[["id"],1],[["v"],2],[["w"],3],[["old"],4],[["s"],5],[["s","a"],6],[["s","t"],7]],"may_be_null":true},{"is":"Conversion","column_id":3,"shadow_id":9,"source":"varchar","target":"DECIMAL(9,2)","using":null,"on_error_null":true,"clause":1,"parts":[3],"named":[],"may_be_null":true}],"clauses":[{"is":"ChangeType","path":["v"],"type":{"is":"Primitive","name":"int32"},"using":"v::int + 1","on_error_null":false},{"is":"ChangeType","path":["w"],"type":{"is":"Decimal","precision":9,"scale":2},"using":null,"on_error_null":true},{"is":"AddColumn","path":["more"],"type":{"is":"List","element":{"is":"Decimal","precision":5,"scale":1}},"default":null,"nullable":true,"comment":"new","position":{"is":"Position","after":"id"},"key":false,"aggregation":null,"if_not_exists":false,"rollup":null},{"is":"AddColumn","path":["n"],"type":{"is":"Primitive","name":"int32"},"default":{"is":"Default","text":"7","literal":true},"nullable":false,"comment":null,"position":null,"key":false,"aggregation":null,"if_not_exists":false,"rollup":null},{"is":"DropColumn","path":["old"],"if_exists":false,"rollup":null},{"is":"RenameColumn","path":["id"],"new_name":"number"},{"is":"SetDefault","path":["s","a"],"default":{"is":"Default","text":"5","literal":true}},{"is":"MoveColumn","path":["w"],"position":{"is":"Position","after":null}},{"is":"ChangeType","path":["s","a"],"type":{"is":"Primitive","name":"int64"},"using":null,"on_error_null":false},{"is":"AddColumn","path":["s","b"],"type":{"is":"Map","key":{"is":"Primitive","name":"varchar"},"value":{"is":"Struct","members":[{"is":"Member","name":"c","type":{"is":"Primitive","name":"int32"},"nullable":true}]}},"default":null,"nullable":true,"comment":null,"position":null,"key":false,"aggregation":null,"if_not_exists":false,"rollup":null}],"rewrites":false,"rollups":[],"refolds":false,"remakes":false,"indexes":[]}',3000000000,20,11,NULL,'',0,0,NULL,NULL,NULL);
INSERT INTO "shelduck_job" VALUES(3,18,'main.waiting','WAITING_TXN','2026-11-22 16:00:27.807117+00',NULL,'{"is":"JobWork","conversions":[{"is":"Conversion","column_id":2,"shadow_id":3,"source":"varchar","target":"INT","using":null,"on_error_null":true,"clause":0,"parts":[2],"named":[],"may_be_null":true}],"clauses":[{"is":"ChangeType","path":["v"],"type":{"is":"Primitive","name":"int32"},"using":null,"on_error_null":true},{"is":"SetProperties","values":[["owner","you"]]},{"is":"SetComment","path":["v"],"comment":"a number"}],"rewrites":false,"rollups":[],"refolds":false,"remakes":false,"indexes":[]}',3000000000,23,13,NULL,'',0,0,NULL,NULL,NULL);
INSERT INTO "shelduck_job" VALUES(4,19,'main.running','RUNNING','2026-11-22 16:00:28.06753+00',NULL,'{"is":"JobWork","conversions":[{"is":"Conversion","column_id":2,"shadow_id":3,"source":"varchar","target":"INT","using":null,"on_error_null":false,"clause":0,"parts":[2],"named":[],"may_be_null":false}],"clauses":[{"is":"ChangeType","path":["v"],"type":{"is":"Primitive","name":"int32"},"using":null,"on_error_null":false}],"rewrites":false,"rollups":[],"refolds":false,"remakes":false,"indexes":[]}',3000000000,26,15,NULL,'',1,1,40,NULL,'2026-11-22 16:00:37.011709+00');
INSERT INTO "shelduck_job" VALUES(5,20,'main.laid_out','PENDING','2026-11-22 16:00:28.370988+00',NULL,'{"is":"JobWork","conversions":[],"clauses":[{"is":"SetPartitioning","keys":[{"is":"PartitionBy","column":"at","transform":{"is":"Transform","kind":"year","buckets":0}},{"is":"PartitionBy","column":"g","transform":{"is":"Transform","kind":"bucket","buckets":4}}]},{"is":"SetSorting","keys":[{"is":"SortKey","expression":"id","descending":true,"nulls_first":false}]},{"is":"RewriteOlderFiles"}],"rewrites":true,"rollups":[],"refolds":false,"remakes":false,"indexes":[]}',3000000000,29,17,NULL,'',0,0,NULL,NULL,NULL);
INSERT INTO "shelduck_job" VALUES(6,23,'main.rewritten','PENDING','2026-11-22 16:00:28.830779+00',NULL,'{"is":"JobWork","conversions":[],"clauses":[{"is":"RewriteOlderFiles"}],"rewrites":true,"rollups":[],"refolds":false,"remakes":false,"indexes":[]}',3000000000,31,18,NULL,'',0,0,NULL,NULL,NULL);
INSERT INTO "shelduck_job" VALUES(7,24,'main.modified','PENDING','2026-11-22 16:00:29.194925+00',NULL,'{"is":"JobWork","conversions":[{"is":"Conversion","column_id":2,"shadow_id":3,"source":"varchar","target":"INT","using":null,"on_error_null":false,"clause":0,"parts":[2],"named":[],"may_be_null":false}],"clauses":[{"is":"ModifyColumn","path":["v"],"type":{"is":"Primitive","name":"int32"},"default":null,"nullable":true,"comment":"m","position":{"is":"Position","after":null},"key":false,"aggregation":null,"rollup":null},{"is":"OrderColumns","names":["k","v"],"rollup":null}],"rewrites":false,"rollups":[],"refolds":false,"remakes":false,"indexes":[]}',3000000000,34,20,NULL,'',0,0,NULL,NULL,NULL);
INSERT INTO "shelduck_job" VALUES(8,25,'main.ended','FINISHED','2026-11-22 16:00:29.408487+00','2026-11-22 16:00:38.747855+00','{"is":"JobWork","conversions":[{"is":"Conversion","column_id":2,"shadow_id":3,"source":"varchar","target":"INT","using":null,"on_error_null":false,"clause":0,"parts":[2],"named":[],"may_be_null":false}],"clauses":[{"is":"ChangeType","path":["v"],"type":{"is":"Primitive","name":"int32"},"using":null,"on_error_null":false}],"rewrites":false,"rollups":[],"refolds":false,"remakes":false,"indexes":[]}',3000000000,37,22,57,'',1,1,42,NULL,'2026-11-22 16:00:38.245664+00');
INSERT INTO "shelduck_job" VALUES(9,26,'main.failed','CANCELLED','2026-11-22 16:00:29.845881+00','2026-11-22 16:00:39.638398+00','{"is":"JobWork","conversions":[{"is":"Conversion","column_id":2,"shadow_id":3,"source":"varchar","target":"INT","using":null,"on_error_null":false,"clause":0,"parts":[2],"named":[],"may_be_null":false}],"clauses":[{"is":"ChangeType","path":["v"],"type":{"is":"Primitive","name":"int32"},"using":null,"on_error_null":false}],"rewrites":false,"rollups":[],"refolds":false,"remakes":false,"indexes":[]}',3000000000,40,24,NULL,'1 value(s) of column ''v'' do not survive as int32, such as ''x'', in @LAKE@/data/main/failed/01a203fc-cfa6-773b-a9a7-91bfc5efa869/part-00000-6fa86a85-efb1-4e40-9bae-a13add2077ea-c000.snappy.parquet; correct them, give a conversion with USING, or accept NULL with ON ERROR NULL',0,1,44,NULL,'2026-11-22 16:00:38.821682+00');
INSERT INTO "shelduck_job" VALUES(10,27,'main.given_up','CANCELLED','2026-11-22 16:00:30.207546+00','2026-11-22 16:00:39.650844+00','{"is":"JobWork","conversions":[{"is":"Conversion","column_id":2,"shadow_id":3,"source":"varchar","target":"INT","using":null,"on_error_null":false,"clause":0,"parts":[2],"named":[],"may_be_null":false}],"clauses":[{"is":"ChangeType","path":["v"],"type":{"is":"Primitive","name":"int32"},"using":null,"on_error_null":false}],"rewrites":false,"rollups":[],"refolds":false,"remakes":false,"indexes":[]}',3000000000,43,26,NULL,'user cancelled',0,0,NULL,NULL,NULL);
INSERT INTO "shelduck_job" VALUES(11,28,'main.filling','RUNNING','2026-11-22 16:00:31.078566+00',NULL,'{"is":"JobWork","conversions":[],"clauses":[],"rewrites":false,"rollups":[{"is":"RollupSpec","name":"by_v","columns":["v","k"],"measures":[],"duplicate_keys":null}],"refolds":false,"remakes":false,"indexes":[]}',3000000000,45,27,NULL,'',1,1,41,NULL,'2026-11-22 16:00:37.563861+00');
INSERT INTO "shelduck_job" VALUES(12,29,'main.sorted','PENDING','2026-11-22 16:00:31.729532+00',NULL,'{"is":"JobWork","conversions":[],"clauses":[],"rewrites":false,"rollups":[{"is":"RollupSpec","name":"by_v","columns":["v","g"],"measures":[],"duplicate_keys":["v"]}],"refolds":false,"remakes":false,"indexes":[]}',3000000000,47,28,NULL,'',0,0,NULL,NULL,NULL);
INSERT INTO "shelduck_job" VALUES(13,31,'main.measured','PENDING','2026-11-22 16:00:32.245304+00',NULL,'{"is":"JobWork","conversions":[],"clauses":[],"rewrites":false,"rollups":[{"is":"RollupSpec","name":"m2","columns":["g"],"measures":[{"is":"MeasureSpec","name":"s","measure":{"is":"Measure","value":"SUM"},"column":"v"},{"is":"MeasureSpec","name":"c","measure":{"is":"Measure","value":"COUNT"},"column":null}],"duplicate_keys":null}],"refolds":false,"remakes":false,"indexes":[]}',3000000000,49,29,NULL,'',0,0,NULL,NULL,NULL);
INSERT INTO "shelduck_job" VALUES(14,33,'main.folding','PENDING','2026-11-22 16:00:33.721385+00',NULL,'{"is":"JobWork","conversions":[],"clauses":[{"is":"DropColumn","path":["j"],"if_exists":false,"rollup":null}],"rewrites":false,"rollups":[{"is":"RollupSpec","name":"__folded","columns":["k","v"],"measures":[],"duplicate_keys":null}],"refolds":true,"remakes":false,"indexes":[]}',3000000000,51,30,NULL,'',0,0,NULL,NULL,NULL);
INSERT INTO "shelduck_job" VALUES(15,35,'main.remaking','PENDING','2026-11-22 16:00:36.780564+00',NULL,'{"is":"JobWork","conversions":[],"clauses":[{"is":"ModifyColumn","path":["v"],"type":{"is":"Primitive","name":"int64"},"default":null,"nullable":true,"comment":null,"position":null,"key":false,"aggregation":{"is":"Aggregation","value":"SUM"},"rollup":null},{"is":"DropColumn","path":["a"],"if_exists":false,"rollup":"r"}],"rewrites":false,"rollups":[],"refolds":false,"remakes":true,"indexes":[{"is":"JobIndex","name":"remaking","table_id":35},{"is":"JobIndex","name":"r","table_id":37},{"is":"JobIndex","name":"r2","table_id":39}]}',3000000000,53,31,NULL,'',0,0,NULL,NULL,NULL);
CREATE TABLE shelduck_layout (
	layout_id BIGINT NOT NULL, 
	digest VARCHAR, 
	layout VARCHAR, 
	PRIMARY KEY (layout_id)
);
INSERT INTO "shelduck_layout" VALUES(1,'7fd2f1ceb49ae2984bec405bf8434b6e','[["v",1,"int32","","",[]],["g",2,"varchar","","",[]]]');
INSERT INTO "shelduck_layout" VALUES(2,'d3b0172ebe80074e2abf9f94c6ec2938','[["k",1,"int32","","",[]],["g",2,"varchar","","",[]],["v",3,"int32","","",[]]]');
INSERT INTO "shelduck_layout" VALUES(3,'c681c9e3b20ec3d9b40cb748eef86db4','[["g",1,"varchar","","",[]],["s",2,"int64","","",[]],["n",3,"int64","","",[]],["c",4,"int64","","",[]],["lo",5,"int32","","",[]],["hi",6,"int32","","",[]]]');
INSERT INTO "shelduck_layout" VALUES(4,'f2267a4e47a2cc1ca681e4bbd12eda18','[["g",1,"varchar","","",[]],["s",2,"int64","","",[]],["n",3,"int64","","",[]],["c",4,"int64","","",[]],["lo",5,"int32","","",[]],["hi",6,"int32","","",[]],["_ducklake_internal_row_id",2147483540,"int64","","",[]]]');
INSERT INTO "shelduck_layout" VALUES(5,'05f76cffc4588a4597b5b7cd6a01f67e','[["g",1,"int32","","",[]],["k",2,"int32","","",[]],["v",3,"varchar","","",[]],["at",4,"int64","","",[]]]');
INSERT INTO "shelduck_layout" VALUES(6,'a3c1d0a910ff3c49327c8eb238f4d6e9','[["k",1,"int32","","",[]],["g",2,"int32","","",[]],["at",3,"int64","","",[]],["v",4,"varchar","","",[]]]');
INSERT INTO "shelduck_layout" VALUES(7,'b76708cd1ac27008a84d80328545f71f','[["k",1,"int32","","",[]],["g",2,"int32","","",[]],["at",3,"int64","","",[]],["v",4,"varchar","","",[]],["_ducklake_internal_row_id",2147483540,"int64","","",[]]]');
INSERT INTO "shelduck_layout" VALUES(8,'fe38724cea12868cc61cbfb1b8af33a4','[["g",1,"int32","","",[]],["k",2,"int32","","",[]],["v",3,"varchar","","",[]],["at",4,"int64","","",[]],["_ducklake_internal_row_id",2147483540,"int64","","",[]]]');
INSERT INTO "shelduck_layout" VALUES(9,'31c2085ffd9169a23280a8d7cd6631c5','[["j",1,"int32","","",[]],["k",2,"int32","","",[]],["s",3,"int64","","",[]],["lo",4,"int32","","",[]],["hi",5,"int32","","",[]],["r",6,"varchar","","",[]],["n",7,"varchar","","",[]]]');
INSERT INTO "shelduck_layout" VALUES(10,'b8a68a477c8492c1fec928102f313275','[["j",1,"int32","","",[]],["s",2,"decimal(38,0)","","",[]],["hi",3,"int32","","",[]]]');
INSERT INTO "shelduck_layout" VALUES(11,'2ce63d972ddae564432e7b05ea250126','[["j",1,"int32","","",[]],["k",2,"int32","","",[]],["s",3,"int64","","",[]],["lo",4,"int32","","",[]],["hi",5,"int32","","",[]],["r",6,"varchar","","",[]],["n",7,"varchar","","",[]],["_ducklake_internal_row_id",2147483540,"int64","","",[]]]');
INSERT INTO "shelduck_layout" VALUES(12,'d3354e914710c4d55be6865d6a656e91','[["j",1,"int32","","",[]],["s",2,"decimal(38,0)","","",[]],["hi",3,"int32","","",[]],["_ducklake_internal_row_id",2147483540,"int64","","",[]]]');
INSERT INTO "shelduck_layout" VALUES(13,'a4d70776bab433c9a20ddc48a15e7211','[["id",1,"int32","","",[]],["s",2,"struct","","",[["a",3,"int32","","",[]],["l",4,"list","","list",[["element",5,"decimal(9,2)","","",[]]]]]],["m",6,"map","","key_value",[["key",7,"varchar","","",[]],["value",8,"date","","",[]]]]]');
INSERT INTO "shelduck_layout" VALUES(14,'202ee9ef96f1362e5d96499bf098d8a5','[["id",1,"int64","","",[]],["s",2,"struct","","",[["a",3,"int32","","",[]],["l",4,"list","","list",[["element",5,"decimal(9,2)","","",[]]]]]],["m",6,"map","","key_value",[["key",7,"varchar","","",[]],["value",8,"date","","",[]]]],["_ducklake_internal_row_id",2147483540,"int64","","",[]]]');
INSERT INTO "shelduck_layout" VALUES(15,'abd4e2fd04f76a8455ba3b2b2106cba7','[["id",1,"int32","","",[]],["v",2,"varchar","","",[]],["w",3,"varchar","","",[]],["old",4,"int32","","",[]],["s",5,"struct","","",[["a",6,"int32","","",[]],["t",7,"varchar","","",[]]]]]');
INSERT INTO "shelduck_layout" VALUES(16,'8e96bd32045cb3a598aa877d5d089a4d','[["id",1,"int32","","",[]],["v",2,"varchar","","",[]]]');
INSERT INTO "shelduck_layout" VALUES(17,'67e5f374465f87d49c60cf23c1e8cbbf','[["id",1,"int32","","",[]],["at",2,"date","","",[]],["g",3,"varchar","","",[]]]');
INSERT INTO "shelduck_layout" VALUES(18,'25992b2a7decd059b145869991c3f6e8','[["id",1,"int32","","",[]],["v",2,"int32","","",[]]]');
INSERT INTO "shelduck_layout" VALUES(19,'6bf57843bf5771fd426042ea6e9eb79c','[["k",1,"int32","","",[]],["v",2,"varchar","","",[]]]');
INSERT INTO "shelduck_layout" VALUES(20,'35f982befbe32842743b905859e1cc32','[["k",1,"int32","","",[]],["g",2,"int32","","",[]],["v",3,"int32","","",[]]]');
INSERT INTO "shelduck_layout" VALUES(21,'c5e93dc81c7e9657a04c6261abc5d1b5','[["k",1,"int32","","",[]],["j",2,"int32","","",[]],["v",3,"int32","","",[]]]');
INSERT INTO "shelduck_layout" VALUES(22,'5ed42788574134d6dbab56a26eefd10d','[["a",1,"int32","","",[]],["b",2,"int32","","",[]],["v",3,"int64","","",[]]]');
INSERT INTO "shelduck_layout" VALUES(23,'67c329c99a0131b5b945d0fcc5c1ecbf','[["b",1,"int32","","",[]],["v",2,"int64","","",[]]]');
INSERT INTO "shelduck_layout" VALUES(24,'fc1624c4464cb08304557bbdfb1f1145','[["a",1,"int32","","",[]],["b",2,"int32","","",[]],["c",3,"int32","","",[]],["v",4,"int32","","",[]]]');
INSERT INTO "shelduck_layout" VALUES(25,'c8102f1245903a32c07036824f4e7eea','[["id",1,"int32","","",[]],["v",2,"varchar","","",[]],["v_3",3,"int32","","",[]],["_ducklake_internal_row_id",2147483540,"int64","","",[]]]');
INSERT INTO "shelduck_layout" VALUES(26,'074b8ab722bc573e3076abd21cd395d0','[["v",1,"int32","","",[]],["k",2,"int32","","",[]]]');
INSERT INTO "shelduck_layout" VALUES(27,'9c8ec8c637aed6a74b5ccc7473a08eb2','[["id",1,"int32","","",[]],["s",2,"struct","","",[["a",3,"int32","","",[]]]],["l",4,"list","","list",[["element",5,"decimal(9,2)","","",[]]]],["u",6,"varchar","","",[]]]');
INSERT INTO "shelduck_layout" VALUES(28,'d77b26240b14e2276409bdef0e4879a6','[["id",1,"int32","","",[],true],["s",2,"struct","","",[["a",3,"int32","","",[],true]]],["l",4,"list","","list",[["element",5,"decimal(9,2)","","",[]]]],["u",6,"varchar","","",[]]]');
CREATE TABLE shelduck_released_file (
	data_file_id BIGINT NOT NULL, 
	path VARCHAR, 
	released VARCHAR, 
	PRIMARY KEY (data_file_id)
);
CREATE TABLE shelduck_settled (
	table_id BIGINT NOT NULL, 
	snapshot_id BIGINT, 
	PRIMARY KEY (table_id)
);
INSERT INTO "shelduck_settled" VALUES(11,11);
INSERT INTO "shelduck_settled" VALUES(13,11);
INSERT INTO "shelduck_settled" VALUES(33,51);
INSERT INTO "shelduck_settled" VALUES(35,53);
INSERT INTO "shelduck_settled" VALUES(37,53);
INSERT INTO "shelduck_settled" VALUES(39,53);
INSERT INTO "shelduck_settled" VALUES(41,55);
INSERT INTO "shelduck_settled" VALUES(7,61);
INSERT INTO "shelduck_settled" VALUES(9,61);
INSERT INTO "shelduck_settled" VALUES(3,62);
INSERT INTO "shelduck_settled" VALUES(5,62);
CREATE TABLE shelduck_stream_batches (
	table_id BIGINT NOT NULL, 
	query_id VARCHAR NOT NULL, 
	batch_id BIGINT, 
	snapshot_id BIGINT, 
	PRIMARY KEY (table_id, query_id)
);
INSERT INTO "shelduck_stream_batches" VALUES(0,'nightly',3,60);
CREATE TABLE shelduck_writer (
	writer_id VARCHAR NOT NULL, 
	table_id BIGINT NOT NULL, 
	snapshot_id BIGINT, 
	expires VARCHAR, 
	PRIMARY KEY (writer_id, table_id)
);
CREATE INDEX shelduck_ix_column ON ducklake_column (table_id);
CREATE INDEX shelduck_ix_data_file ON ducklake_data_file (table_id);
CREATE INDEX shelduck_ix_delete_file ON ducklake_delete_file (table_id);
CREATE INDEX shelduck_ix_file_column_stats ON ducklake_file_column_stats (table_id, column_id);
CREATE INDEX shelduck_ix_file_variant_stats ON ducklake_file_variant_stats (table_id, column_id);
CREATE INDEX shelduck_ix_file_partition_value ON ducklake_file_partition_value (table_id);
CREATE INDEX shelduck_ix_schema_versions ON ducklake_schema_versions (table_id);
CREATE INDEX shelduck_ix_table ON ducklake_table (table_id);
CREATE INDEX shelduck_ix_table_stats ON ducklake_table_stats (table_id);
CREATE INDEX shelduck_ix_table_column_stats ON ducklake_table_column_stats (table_id);
CREATE TRIGGER shelduck_kept_places AFTER INSERT ON ducklake_column
WHEN NEW.column_order = NEW.column_id
BEGIN
  UPDATE ducklake_column SET column_order = coalesce((
      SELECT before.column_order FROM ducklake_column before
      WHERE before.table_id = NEW.table_id AND before.column_id = NEW.column_id
        AND before.begin_snapshot < NEW.begin_snapshot
      ORDER BY before.begin_snapshot DESC LIMIT 1), column_order)
  WHERE rowid = NEW.rowid;
END;
COMMIT;
